//! Flags of simple_switch_grpc that this switch does not have. In: the flags. Out: a note for those that change nothing, a
//! refusal with what works instead for those whose absence would change an experiment. None is ignored in silence.

use super::super::exit;

/// Flags that scripts for simple_switch_grpc give.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Flags of simple_switch_grpc")]
pub struct Foreign {
    /// Packets over gRPC: refused.
    #[arg(long, value_name = "ADDR", hide = true)]
    pub dp_grpc_server_addr: Option<String>,
    /// Packets over nanomsg: refused.
    #[arg(long, value_name = "ADDR", hide = true)]
    pub packet_in: Option<String>,
    /// Port events over nanomsg: noted.
    #[arg(long, value_name = "ADDR", hide = true)]
    pub notifications_addr: Option<String>,
    /// Debugger: noted.
    #[arg(long, hide = true)]
    pub debugger: bool,
    /// Debugger: noted.
    #[arg(long, value_name = "ADDR", hide = true)]
    pub debugger_addr: Option<String>,
    /// Sizes of log files: noted.
    #[arg(long, value_name = "BYTES", hide = true)]
    pub log_file_max_size: Option<u64>,
    /// Number of log files: noted.
    #[arg(long, value_name = "N", hide = true)]
    pub log_file_max_files: Option<u64>,
    /// Sizes of multicast tables: noted.
    #[arg(long, value_name = "N", hide = true)]
    pub max_mc_groups: Option<u64>,
    /// Sizes of multicast tables: noted.
    #[arg(long, value_name = "N", hide = true)]
    pub max_l1_entries: Option<u64>,
    /// Sizes of multicast tables: noted.
    #[arg(long, value_name = "N", hide = true)]
    pub max_l2_entries: Option<u64>,
    /// State of a former run: refused.
    #[arg(long, value_name = "FILE", hide = true)]
    pub restore_state: Option<String>,
    /// Extern libraries: refused.
    #[arg(long, value_name = "FILES", hide = true)]
    pub load_modules: Option<String>,
    /// Log file: refused.
    #[arg(long, value_name = "FILE", hide = true)]
    pub log_file: Option<String>,
    /// Thrift server: noted.
    #[arg(long, value_name = "PORT", hide = true)]
    pub thrift_port: Option<u16>,
    /// nanomsg log: noted.
    #[arg(long, value_name = "ADDR", hide = true)]
    pub nanolog: Option<String>,
    /// Log on the console: what it does anyway.
    #[arg(long, hide = true)]
    pub log_console: bool,
    /// Log level: noted.
    #[arg(short = 'L', long, value_name = "LEVEL", hide = true)]
    pub log_level: Option<String>,
    /// Flushing of the log file: noted.
    #[arg(long, hide = true)]
    pub log_flush: bool,
    /// Packet bytes in the log: noted.
    #[arg(long, value_name = "BYTES", hide = true)]
    pub dump_packet_data: Option<u32>,
    /// Ports at most: noted.
    #[arg(long, value_name = "N", hide = true)]
    pub max_port_count: Option<u32>,
    /// No change of program at run time: refused.
    #[arg(long, hide = true)]
    pub disable_swap: bool,
}

impl Foreign {
    /// Notes for flags that may be there, or the refusal of the first that may not.
    ///
    /// # Errors
    /// A flag whose absence would change an experiment.
    pub fn check(&self) -> anyhow::Result<Vec<String>> {
        let named = |flag: &str, given: bool| given.then(|| flag.to_owned());
        let refused = [
            (
                named("--dp-grpc-server-addr", self.dp_grpc_server_addr.is_some()),
                "packets do not come over gRPC but as packet-out; leave it out",
            ),
            (
                named("--packet-in", self.packet_in.is_some()),
                "packets do not come over nanomsg; give ports with -i PORT@IFACE or --use-files",
            ),
            (
                named("--restore-state", self.restore_state.is_some()),
                "state is not restored from files; let the controller write its entries again",
            ),
            (
                named("--load-modules", self.load_modules.is_some()),
                "externs from .so files are not loaded; use v1model's externs",
            ),
            (
                named("--log-file", self.log_file.is_some()),
                "logs go to standard error; redirect it with 2>FILE",
            ),
            (
                named("--disable-swap", self.disable_swap),
                "a client that is primary may always change the program; leave it out",
            ),
        ];
        for (flag, why) in refused {
            if let Some(flag) = flag {
                return Err(exit::usage(format!("{flag}: {why}")));
            }
        }
        let noted = [
            (
                "--thrift-port",
                self.thrift_port.is_some(),
                "there is no Thrift server; use P4Runtime",
            ),
            ("--nanolog", self.nanolog.is_some(), "there is no nanomsg log; see --log"),
            ("--log-level", self.log_level.is_some(), "use --log info or RINGPATH_LOG"),
            ("--log-flush", self.log_flush, "logs are not buffered"),
            ("--dump-packet-data", self.dump_packet_data.is_some(), "packets are not logged"),
            ("--max-port-count", self.max_port_count.is_some(), "ports 0 to 511 always exist"),
            (
                "--notifications-addr",
                self.notifications_addr.is_some(),
                "port events come from the gRPC service ringpath.v1.Switch (--stats --watch)",
            ),
            (
                "--debugger",
                self.debugger || self.debugger_addr.is_some(),
                "`ringpath switch trace` shows what a packet meets",
            ),
            (
                "--log-file-max-size or --log-file-max-files",
                self.log_file_max_size.is_some() || self.log_file_max_files.is_some(),
                "logs go to standard error",
            ),
            (
                "--max-mc-groups, --max-l1-entries or --max-l2-entries",
                [self.max_mc_groups, self.max_l1_entries, self.max_l2_entries]
                    .iter()
                    .any(Option::is_some),
                "the limits are fixed: 32,768 groups of at most 4,096 replicas",
            ),
        ];
        let noted = noted.into_iter().filter(|(_, given, _)| *given);
        Ok(noted.map(|(flag, _, why)| format!("{flag} does nothing: {why}")).collect())
    }
}
