//! Flags of a switch's ports. In: simple_switch_grpc's `-i`, `--pcap` and `--use-files`, our `--port-rate`. Out: open ports, or what is wrong
//! with the flags.

use super::super::exit;
use crate::id::PortNo;
use crate::switch::Config;
use crate::switch::port::{OpenError, PORT_MAX, Ports, Spec};
use crate::time::Span;
use crate::units::BitRate;
use std::path::PathBuf;

/// A shaper's rate, of one port or of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRate {
    /// The port; `None` = all.
    pub port: Option<PortNo>,
    /// The rate; `None` = no shaper.
    pub rate: Option<BitRate>,
}

impl std::fmt::Display for PortRate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.port {
            Some(port) => write!(f, "port {}: ", port.0)?,
            None => write!(f, "all ports: ")?,
        }
        match self.rate {
            Some(rate) => write!(f, "{rate}"),
            None => write!(f, "no shaper"),
        }
    }
}

/// `PORT=RATE` or `PORT=none`.
///
/// # Errors
/// What is wrong with it.
pub fn change(text: &str) -> Result<PortRate, String> {
    if let Some((port, "none")) = text.split_once('=') {
        // With any rate, so that the port is read by the same rules.
        return Ok(PortRate { rate: None, ..rate(&format!("{port}=1"))? });
    }
    match rate(text)? {
        PortRate { port: None, .. } => {
            Err("it names no port; write for example 3=10Mbps".to_owned())
        }
        change => Ok(change),
    }
}

fn rate(text: &str) -> Result<PortRate, String> {
    let (port, rate) = match text.split_once('=') {
        None => (None, text),
        Some((port, rate)) => {
            let number = port.parse().ok().filter(|number| *number <= PORT_MAX);
            let wrong = || format!("'{port}' is no port: a number from 0 to {PORT_MAX}");
            (Some(PortNo(number.ok_or_else(wrong)?)), rate)
        }
    };
    let bits = rate.parse::<u64>().map(BitRate).or_else(|_| rate.parse::<BitRate>());
    let rate = bits.map_err(|error| error.to_string())?;
    if rate.0 == 0 {
        return Err("a rate of 0 sends nothing; leave the flag out for no shaper".to_owned());
    }
    Ok(PortRate { port, rate: Some(rate) })
}

/// Flags of ports.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Ports")]
pub struct Outside {
    /// A port on an interface, such as 1@veth0; give it once per port.
    #[arg(short = 'i', long = "interface", value_name = "PORT@IFACE")]
    pub interface: Vec<Spec>,
    /// Record each interface's packets in DIR/IFACE_in.pcap and DIR/IFACE_out.pcap; without DIR in the working directory.
    #[arg(long, value_name = "DIR", num_args = 0..=1)]
    pub pcap: Option<Option<PathBuf>>,
    /// Read packets from IFACE_in.pcap instead of interfaces and write them to IFACE_out.pcap, beginning after so many seconds.
    #[arg(long, value_name = "SECONDS")]
    pub use_files: Option<u32>,
    /// Shaper shared by all queues of a port: bits per second or such as 100Mbps, for all ports or as PORT=RATE. Default: none.
    #[arg(long, value_name = "[PORT=]RATE", value_parser = rate)]
    pub port_rate: Vec<PortRate>,
}

impl Outside {
    /// Each port with its rate.
    fn wanted(&self, config: &Config) -> anyhow::Result<Vec<(Spec, Option<BitRate>)>> {
        for (port, flag) in [(config.cpu_port, "--cpu-port"), (config.drop_port, "--drop-port")] {
            if let Some(spec) = self.interface.iter().find(|spec| spec.port == port) {
                let text = format!(
                    "-i {}@{}: {} is {flag}; choose another port",
                    port.0, spec.name, port.0
                );
                return Err(exit::usage(text));
            }
        }
        let named = |port: PortNo| self.interface.iter().any(|spec| spec.port == port);
        if let Some(port) =
            self.port_rate.iter().filter_map(|rate| rate.port).find(|port| !named(*port))
        {
            let text = format!(
                "--port-rate {}=...: port {} has no interface; add -i {}@IFACE",
                port.0, port.0, port.0
            );
            return Err(exit::usage(text));
        }
        // The last word counts, that of one port before that of all.
        let of = |port: PortNo| {
            let last = |wanted| self.port_rate.iter().rev().find(|rate| rate.port == wanted);
            last(Some(port)).or_else(|| last(None)).and_then(|rate| rate.rate)
        };
        Ok(self.interface.iter().map(|spec| (spec.clone(), of(spec.port))).collect())
    }

    /// Opens the ports.
    ///
    /// # Errors
    /// Flags that contradict each other; an interface or a file that cannot be had.
    pub fn open(&self, config: &Config) -> anyhow::Result<Ports> {
        let wanted = self.wanted(config)?;
        let folder = self.pcap.clone().map(|folder| folder.unwrap_or_else(|| PathBuf::from(".")));
        let ports = match self.use_files {
            Some(_) if folder.is_some() => {
                let text = "--pcap: with --use-files packets are files already; leave it out";
                return Err(exit::usage(text.to_owned()));
            }
            Some(seconds) => {
                let pause = Span::from_secs_f64(seconds.into());
                Ports::files(&wanted, std::path::Path::new("."), pause)
            }
            None => Ports::interfaces(&wanted, folder.as_deref()),
        };
        ports.map_err(|error| match error {
            OpenError::Twice(_) | OpenError::Folder(_) => exit::usage(error.to_string()),
            error => error.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        outside: Outside,
    }

    fn wanted(flags: &str) -> Result<Vec<(u16, Option<u64>)>, String> {
        let line = ["x"].into_iter().chain(flags.split_whitespace());
        let line = Line::try_parse_from(line).map_err(|error| error.to_string())?;
        let wanted = line.outside.wanted(&Config::default()).map_err(|error| error.to_string())?;
        Ok(wanted.iter().map(|(spec, rate)| (spec.port.0, rate.map(|rate| rate.0))).collect())
    }

    #[test]
    fn a_change_of_rate_names_its_port() {
        let told = |text| change(text).map(|change| change.to_string());
        assert_eq!(told("3=10Mbps").unwrap(), "port 3: 10Mbps");
        assert_eq!(told("3=none").unwrap(), "port 3: no shaper");
        for (text, part) in [
            ("10Mbps", "names no port"),
            ("600=none", "'600' is no port"),
            ("3=0", "sends nothing"),
        ] {
            assert!(told(text).unwrap_err().contains(part), "{text}");
        }
    }

    #[test]
    fn a_rate_is_of_one_port_before_it_is_of_all() {
        let ports = "-i 1@a -i 2@b -i 3@c";
        assert_eq!(wanted(ports), Ok(vec![(1, None), (2, None), (3, None)]));
        let flags = format!("{ports} --port-rate 2=1000 --port-rate 10Mbps --port-rate 3=1Gbps");
        let want = vec![(1, Some(10_000_000)), (2, Some(1_000)), (3, Some(1_000_000_000))];
        assert_eq!(wanted(&flags), Ok(want));
    }

    #[test]
    fn wrong_flags_say_what_to_write() {
        for (flags, text) in [
            ("-i veth0", "'veth0' has no '@'; write PORT@INTERFACE"),
            ("-i 512@veth0", "'512' is no port: a number from 0 to 511"),
            ("-i x@veth0", "'x' is no port"),
            ("-i 1@", "'' can be no interface"),
            ("-i 1@../../etc/passwd", "can be no interface"),
            ("-i 1@a-name-of-16-byte", "can be no interface"),
            ("-i 510@a", "510 is --cpu-port"),
            ("-i 511@a", "511 is --drop-port"),
            ("--port-rate 1=10Mbps", "port 1 has no interface"),
            ("-i 1@a --port-rate 1=fast", "does not start with a number"),
            ("-i 1@a --port-rate 600=1", "'600' is no port"),
            ("-i 1@a --port-rate 0", "a rate of 0 sends nothing"),
        ] {
            let error = wanted(flags).unwrap_err();
            assert!(error.contains(text), "{flags}: {error}");
        }
    }

    #[test]
    fn ports_are_opened_only_when_each_stands_once_and_exists() {
        let open = |flags: &str| {
            let line = ["x"].into_iter().chain(flags.split_whitespace());
            let outside = Line::try_parse_from(line).unwrap().outside;
            exit::chain(&outside.open(&Config::default()).err().unwrap())
        };
        for (flags, text) in [
            ("-i 1@a -i 1@b", "port 1 is given twice"),
            ("-i 1@a -i 2@a", "interface a is given twice"),
            ("-i 1@no-such-iface", "there is no interface no-such-iface"),
            ("-i 1@a --pcap /no/such/folder", "is no folder"),
            ("-i 1@a --use-files 0 --pcap", "packets are files already"),
        ] {
            let error = open(flags);
            assert!(error.contains(text), "{flags}: {error}");
        }
    }
}
