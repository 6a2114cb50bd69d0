"""The testbed's parts: `processes` (started things that must end), `network` (Mininet and what the kernel does to its links), `switches`
(either switch as a process), `experiment` (one run of a scenario), `events` (what is played meanwhile), `results` (measures and files) and
`page` (the report). Nothing here plans or decides: the controller does."""
