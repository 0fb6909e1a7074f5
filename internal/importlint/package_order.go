package importlint

// packageOrder is one package in the order of the house. It imports only packages that
// stand above it.
type packageOrder struct {
	path string // below the module
	pure bool   // no I/O, no goroutines, no clock, no global randomness
}

// packageOrders is the import order, from the words that everybody speaks down to the
// programs.
func packageOrders() []packageOrder {
	return []packageOrder{
		{".", true},
		{"classad", true},
		{"internal/lazyregexp", false}, // not pure only for its sync.OnceValue
		{"internal/suggest", true},
		{"internal/mutant", true},
		{"internal/filesum", true},
		{"internal/damage", false},
		{"internal/attack", false},
		{"gpu", true},
		{"checkpoint", true},

		{"collector/adstore", true},
		{"negotiator/fairshare", true},
		{"negotiator/timeline", true},
		{"negotiator/ledger", true},
		{"negotiator/blackhole", true},
		{"negotiator/match", true},
		{"negotiator/cellstate", true},
		{"schedd/queue/jobad", true},
		{"schedd/queue/adtext", true},
		{"schedd/queue/eventlog", true},
		{"schedd/queue", true},
		{"schedd/table", true},
		{"schedd/slotshare", true},
		{"schedd/dispatch", true},
		{"schedd/selfplace", true},
		{"startd/reclaim", true},
		{"startd/desktop/policy", true},
		{"startd/slot", true},
		{"startd/desktop", true},
		{"startd/starter/proto", true},
		{"internal/submit/jobspec", true},
		{"internal/submit", true},
		{"internal/pbs/qsub", true},
		{"internal/pbs/qalter", true},
		{"internal/pbs/qmgr", true},
		{"internal/pbs/qstat", true},
		{"internal/pbs/nodes", true},
		{"internal/translate", true},
		{"internal/sim/trace", true},
		{"internal/sim/trace/lublin", true},
		{"internal/plot", true},
		{"internal/accounting", true},
		{"internal/accounting/linetext", true},
		{"internal/accounting/accountingtest", false}, // random records, and golden files
		{"internal/accounting/sacct", true},
		{"internal/accounting/export", true},
		{"internal/accounting/codec", true},
		{"internal/accounting/query", true},
		{"internal/sim/eventloop", true},
		{"internal/sim/consensus", true},
		{"internal/sim", true},
		{"internal/sim/packing", true},
		{"internal/sim/whatif", true},
		{"internal/sim/audit", true},
		{"internal/sim/faults", true},

		{"internal/failpoint", false},
		{"internal/tasktrace", false},
		{"internal/atomicfile", false},
		{"internal/boottime", false},
		{"internal/sendqueue", false},
		{"internal/account", false},
		{"internal/identity/peer", false},
		{"internal/wire/codes", true},
		{"internal/wire/scheddapi", false},
		{"internal/wire", false},
		{"internal/rpc/localrpc", false},
		{"internal/rpc", false},
		{"internal/document", false},
		{"internal/checksum", true},
		{"internal/logmark", false},
		{"internal/appendlog", false},
		{"internal/boltfile", false},
		{"internal/replica", false},
		{"internal/config/pooldir", false},
		{"internal/identity/loginfile", false},
		{"internal/config", false},
		{"internal/identity/pki", false},
		{"internal/identity/login", false},
		{"internal/identity/proof", false},
		{"internal/identity/oidc", false},
		{"internal/identity/oidc/oidctest", false},
		{"internal/metrics", false},
		{"internal/daemon", false},
		{"man", false},
		{"internal/web/manual", false},
		{"internal/confine", false},
		{"internal/web/session", false},
		{"internal/web/route", false},
		{"internal/web/jobtext", false},
		{"internal/web/chart", true},
		{"internal/web/simchild", false},
		{"internal/web/view", false},
		{"internal/web/stream", false},
		{"internal/web/terminal", false},
		{"internal/web/page", false},
		{"internal/web/ownerpage", false},
		{"internal/web", false},
		{"internal/adclient", false},
		{"internal/accounting/store", false},
		{"internal/accounting/accountant", false},
		{"internal/userfiles", false},
		{"internal/script", false},
		{"internal/kernfs", false},
		{"internal/cgroup", false},
		{"gpu/nvml", false},
		{"gpu/nvml/fakelib", false},
		{"checkpoint/image", false},
		{"checkpoint/criu", false},
		{"checkpoint/store", false},

		{"schedd/codec", true},
		{"schedd/admission", true},
		{"schedd/journal", false},
		{"schedd/history", false},
		{"schedd/feed", false},
		{"schedd/notify", false},
		{"schedd/peers", false},
		{"schedd/negotiation", false},
		{"schedd/transfer", false},
		{"schedd/usagewindow", true},
		{"schedd/api", false},
		{"startd/starter", false},
		{"startd/starterclient", false},
		{"startd/shell", false},
		{"startd/meter", false},
		{"startd/gpuwatch", false},
		{"startd/claim", false},
		{"startd/streams", false},
		{"startd/desktop/idle", false},
		{"startd/desktop/guard", false},

		{"collector", false},
		{"negotiator", false},
		{"schedd", false},
		{"schedd/cellqueue", false},
		{"startd", false},
		{"checkpoint/server", false},
		{"internal/sim/pool", true}, // it drives the loops of daemons
		{"internal/sim/hrm", true},
		{"internal/sim/fuzz", true},
		{"internal/sim/workload", true},

		{"internal/identity/ca", false},
		{"internal/identity/caclient", false},
		{"etc", false},
		{"internal/enroll", false},
		{"internal/master", false},
		{"internal/agents", false},
		{"internal/roles", false},
		{"internal/roles/noderoles", false},
		{"internal/cli/frame", false},
		{"internal/cli/nodeaccess", false},
		{"internal/cli/clitest", false},
		{"internal/cli/admin", false},
		{"internal/cli/pool", false},
		{"internal/cli/cell", false},
		{"internal/cli/owner", false},
		{"internal/cli/jobs", false},
		{"internal/cli/progressbar", false},
		{"internal/cli/accounts", false},
		{"internal/cli/jobfile", false},
		{"internal/cli/translation", false},
		{"internal/cli/terminal", false},
		{"internal/cli/node", false},
		{"internal/cli/doctor", false},
		{"internal/cli/classad", false},
		{"internal/cli/sim", false},
		{"internal/cli/daemons", false},
		{"internal/cli/nodeprogram", false},
		{"internal/cli/pbs/pbsframe", false},
		{"internal/cli/pbs/reservation", false},
		{"internal/cli/pbs/jobnodes", false},
		{"internal/cli/pbs", false},
		{"internal/cli/localpbs", false},
		{"internal/cli", false},
		{"cmd/roost", false},
		{"cmd/roost-q", false},
		{"cmd/roost-daemon", false},
		{"cmd/roost-accountant", false},
		{"cmd/roost-negotiator", false},
		{"cmd/roost-node", false},
		{"cmd/roost-pam", false}, // built with the tag pam alone
		{"cmd/roost-sim", false},
		{"cmd/roost-starter", false},
		{"cmd/roost-web", false},

		{"internal/importlint", false},
		{"internal/vmimage", false},
		{"internal/e2e", false},
		{"bench/gauge", false},
		{"bench", false},
		{"bench/peers", false},
	}
}

// daemons are the trees that never import each other: they meet on the wire.
func daemons() []string {
	return []string{"collector", "negotiator", "schedd", "startd", "checkpoint/server"}
}

// sharedCores are the packages of one daemon that a package of another may import. Where
// schedds place batch requests on their own copies of the cell state, two planners that
// differ would only conflict. So the leader's planner, which is pure, plans for them,
// too.
func sharedCores() map[string][]string {
	return map[string][]string{"schedd/selfplace": {"negotiator/match", "negotiator/fairshare"}}
}

// libraries says which packages may import each third-party library, by the beginning of
// its path.
func libraries() map[string][]string {
	return map[string][]string{
		"github.com/hashicorp/raft":         {"internal/replica"},
		"github.com/hashicorp/raft-wal":     {"internal/replica"},
		"github.com/anishathalye/porcupine": {"internal/replica"},
		"github.com/hashicorp/go-hclog":     {"internal/replica"},
		"github.com/hashicorp/hcl/v2":       {"internal/submit", "internal/config", "internal/web/jobtext"},
		"github.com/zclconf/go-cty":         {"internal/submit", "internal/config"},
		"go.etcd.io/bbolt": {"internal/boltfile", "schedd/journal", "schedd/history",
			"negotiator", "internal/identity/ca"},
		"github.com/urfave/cli/v2": {"internal/cli/frame", "internal/cli/accounts",
			"internal/cli/admin", "internal/cli/pool",
			"internal/cli/owner", "internal/cli/jobs", "internal/cli/terminal", "internal/cli/node",
			"internal/cli/doctor", "internal/cli/classad", "internal/cli/sim", "internal/cli/daemons",
			"internal/cli/pbs/pbsframe", "internal/cli/pbs/reservation", "internal/cli/pbs", "internal/cli",
			"internal/cli/cell", "internal/cli/jobfile", "internal/cli/nodeaccess", "internal/cli/pbs/jobnodes",
			"internal/cli/translation"},
		"github.com/prometheus/client_golang": {"internal/metrics"},
		"github.com/vbauerster/mpb/v8":        {"internal/cli/progressbar", "internal/cli/sim"},
		// frames and headers of HTTP/2, for calls over sockets; a bound on connections
		"golang.org/x/net":  {"internal/rpc", "internal/rpc/localrpc", "internal/web"},
		"golang.org/x/term": {"internal/cli/frame", "internal/cli/jobs", "internal/cli/terminal"},
		"golang.org/x/time": {"internal/adclient", "collector", "negotiator",
			"schedd", "startd", "internal/web/route"},
		"golang.org/x/sync": {"internal/rpc", "internal/adclient", "collector", "negotiator",
			"schedd", "schedd/cellqueue", "startd", "internal/cli/sim", "internal/web", "bench", "bench/peers"},
		"google.golang.org/grpc/credentials": {"internal/rpc", "internal/identity/peer", "internal/identity/login",
			"internal/identity/ca", "internal/identity/caclient"},
		"google.golang.org/genproto": {"internal/rpc"},
		"google.golang.org/grpc": {"internal/accounting/accountant",
			"internal/wire", "internal/wire/codes", "internal/rpc", "internal/identity/peer",
			"internal/replica", "internal/adclient", "collector", "negotiator", "schedd", "schedd/cellqueue",
			"startd",
			"startd/streams", "startd/desktop/guard", "schedd/api", "schedd/negotiation", "schedd/peers",
			"schedd/transfer",
			"checkpoint/server", "internal/identity/ca", "internal/identity/caclient",
			"internal/cli/clitest", "internal/web/session", "internal/web/view", "internal/web/terminal",
			"internal/e2e", "bench"},
		"google.golang.org/protobuf": {"internal/accounting/codec", "internal/accounting/accountant",
			"checkpoint/criu", "checkpoint/store",
			"internal/wire", "internal/wire/scheddapi", "internal/rpc", "internal/rpc/localrpc",
			"internal/adclient", "collector", "negotiator", "negotiator/ledger", "schedd",
			"schedd/journal", "schedd/queue/eventlog", "startd", "startd/meter", "startd/claim",
			"startd/streams", "startd/desktop/guard", "bench",
			"internal/cli/frame", "internal/cli/clitest", "internal/cli/jobs", "internal/cli/pbs",
			"internal/cli/pbs/jobnodes", "schedd/negotiation", "schedd/peers", "schedd/transfer", "schedd/codec",
			"schedd/api", "internal/web/view", "internal/web/stream",
			"internal/e2e"},
		"github.com/containerd/cgroups/v3":          {"internal/cgroup"},
		"github.com/opencontainers/runtime-spec":    {"internal/cgroup"},
		"github.com/checkpoint-restore/go-criu/v7":  {"checkpoint/criu"},
		"github.com/NVIDIA/go-nvml":                 {"gpu/nvml"},
		"github.com/klauspost/compress":             {"checkpoint/image"},
		"github.com/godbus/dbus/v5":                 {"startd/desktop/idle"},
		"github.com/coder/websocket":                {"internal/web/terminal", "internal/web"}, // the latter: its tests
		"github.com/getkin/kin-openapi":             {"internal/web"},                          // its tests
		"github.com/landlock-lsm/go-landlock":       {"internal/confine"},
		"github.com/elastic/go-seccomp-bpf":         {"internal/confine"},
		"kernel.org/pub/linux/libs/security/libcap": {"internal/confine"},
		"github.com/coreos/go-oidc/v3":              {"internal/identity/oidc"},
		"golang.org/x/oauth2":                       {"internal/identity/oidc"},
		"github.com/msteinert/pam/v2":               {"cmd/roost-pam"},
		"gonum.org/v1/plot":                         {"internal/plot"},
		"modernc.org/sqlite":                        {"internal/accounting/store"},
		"github.com/jackc/pgx/v5":                   {"internal/accounting/store"},
		"github.com/creack/pty":                     {"startd/shell", "internal/cli/progressbar", "internal/e2e"},
		"golang.org/x/sys": {"internal/boottime", "internal/document", "internal/tasktrace", "internal/kernfs",
			"internal/web/jobtext", "internal/web/simchild", "internal/identity/oidc", "internal/confine",
			"internal/cgroup", "checkpoint/image", "checkpoint/criu", "internal/daemon", "internal/userfiles",
			"internal/rpc", "internal/rpc/localrpc", "internal/identity/caclient", "internal/enroll", "internal/master",
			"internal/cli/frame", "internal/cli/doctor", "internal/cli/owner", "internal/cli/sim", "startd",
			"startd/starterclient", "startd/starter", "startd/shell", "startd/meter", "startd/gpuwatch",
			"startd/claim", "startd/streams", "startd/desktop/idle", "startd/desktop/guard", "schedd",
			"schedd/journal", "cmd/roost", "cmd/roost-starter", "internal/e2e", "bench", "bench/peers",
			"schedd/api"},
	}
}

// impurePackages are the packages of the standard library that a pure package may not
// import, with everything below them.
func impurePackages() []string {
	return []string{"os", "net", "syscall", "io/ioutil", "sync", "math/rand", "crypto/rand", "runtime", "log",
		"path/filepath", "context", "plugin", "database", "testing"}
}

// clockFuncs are the functions of package time that look at a clock or wait for it.
func clockFuncs() []string {
	return []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}
}

// vagueNames are names that say nothing of what is in a package.
func vagueNames() []string {
	return []string{"util", "utils", "common", "helper", "helpers", "types", "structs", "manager", "base", "misc"}
}
