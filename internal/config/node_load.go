package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config/pooldir"
	"github.com/roost-batch/roost/internal/rpc"
)

// DefaultFile is the node file of a host that belongs to a pool.
const DefaultFile = pooldir.SystemNodeFile

// Bounds on a node file. The parser is recursive, so nesting is checked before.
const (
	maxFileBytes = 256 << 10
	maxNesting   = 64
)

// Load reads a node file and sets defaults for what it leaves out. If the file cannot be
// read the error is of kind roost.NoInput. Otherwise it is of kind roost.BadConfig, and
// its text shows every mistake with file, line, column, the line itself, a caret, the
// cause and advice.
func Load(file string) (*Node, error) {
	text, err := readFile("node file", file)
	if err != nil {
		return nil, err
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	n, err := parseNodeFile(file, text)
	if err != nil {
		return nil, err
	}
	n.File = path
	n.fillDefaults(filepath.Dir(path), HostName())
	n.resolveRelays()
	if err := n.checkNode(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return n, nil
}

// readFile reads a configuration file, within bounds.
func readFile(what, file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %w", what, file, roost.NoInput, errorCause(err))
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %w", what, file, roost.NoInput, errorCause(err))
	}
	if len(text) > maxFileBytes {
		return nil, fmt.Errorf("%s %s: %w: it is larger than %v", what, file, roost.BadConfig,
			roost.Bytes(maxFileBytes))
	}
	return text, nil
}

// errorCause removes operation and path from an error, because the message already has
// them.
func errorCause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// parseNodeFile parses the text of a node file. Fields that it leaves out stay zero.
func parseNodeFile(file string, text []byte) (*Node, error) {
	p := newProblems(file, text)
	if at, ok := isTooDeep(text); ok {
		p.addProblem(at, "", "brackets are nested more than %d deep", maxNesting)
		return nil, p.asError()
	}
	parsed, diags := hclsyntax.ParseConfig(text, file, hcl.InitialPos)
	if diags.HasErrors() {
		p.addDiagnostics(diags)
		return nil, p.asError()
	}
	n := readNode(p, parsed.Body.(*hclsyntax.Body))
	if err := p.asError(); err != nil {
		return nil, err
	}
	n.Warnings = p.warningTexts()
	return n, nil
}

func isTooDeep(text []byte) (hcl.Range, bool) {
	depth := 0
	for i, c := range text {
		switch c {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth = max(depth-1, 0)
		}
		if depth > maxNesting {
			line, last := bytes.Count(text[:i], []byte("\n"))+1, bytes.LastIndexByte(text[:i], '\n')
			at := hcl.Pos{Line: line, Column: i - last, Byte: i}
			return hcl.Range{Start: at, End: at}, true
		}
	}
	return hcl.Range{}, false
}

func readNode(p *problemList, body *hclsyntax.Body) *Node {
	n := &Node{}
	s := &blockReader{problemList: p, body: body, title: "node file"}
	s.readName("name", &n.Name)
	s.readText("pool", &n.Pool)
	s.readText("dir", &n.Dir)
	s.readName("file_system_domain", &n.FileSystemDomain)
	s.readAddresses("collectors", &n.Collectors)
	s.readAddresses("negotiators", &n.Negotiators)
	s.readAddress("checkpoint_server", &n.ImageServer)
	s.readAddress("accountant", &n.AccountantAt)
	s.readAddress("authority", &n.AuthorityAt)
	if b := s.singleBlock("tls"); b != nil {
		n.TLS = &TLSFiles{}
		s.readTLS(b, n.TLS)
	}
	if b := s.singleBlock("authority"); b != nil {
		n.Authority = &AuthoritySettings{}
		s.readAuthority(b, n.Authority)
	}
	if b := s.singleBlock("collector"); b != nil {
		n.Collector = &CollectorSettings{}
		s.readCollector(b, n.Collector)
	}
	if b := s.singleBlock("negotiator"); b != nil {
		n.Negotiator = &NegotiatorSettings{}
		g := s.innerBlock(b)
		g.readAddresses("listen", &n.Negotiator.Listen)
		g.readDuration("cycle", `"5s"`, &n.Negotiator.Cycle)
		g.readDuration("election", `"250ms"`, &n.Negotiator.Election)
		g.checkElection(n.Negotiator.Election)
		g.reportUnknown()
	}
	if b := s.singleBlock("schedd"); b != nil {
		n.Schedd = &ScheddSettings{}
		s.readSchedd(b, n.Schedd)
	}
	if b := s.singleBlock("cell_queue"); b != nil {
		n.CellQueue = &CellQueueSettings{}
		s.readCellQueue(b, n)
	}
	if b := s.singleBlock("checkpoint_server"); b != nil {
		n.Images = &CheckpointServerSettings{}
		s.readCheckpointServer(b, n.Images)
	}
	s.readObservers(n)
	s.readStartds(n)
	if b := s.singleBlock("owner"); b != nil {
		o := s.innerBlock(b)
		o.readText("file", &n.Owner.File)
		o.reportUnknown()
	}
	s.reportUnknown()
	if n.Roles() == nil && len(p.errors) == 0 {
		p.addProblem(body.MissingItemRange(),
			"add a block for each daemon: collector, negotiator, schedd, startd, cell_queue, "+
				"checkpoint_server, accountant, authority",
			"the node has no daemons")
	}
	return n
}

// readObservers reads the blocks of what only looks at the pool.
func (s *blockReader) readObservers(n *Node) {
	if b := s.singleBlock("web"); b != nil {
		n.Web = &WebSettings{}
		s.readWeb(b, n.Web)
	}
	s.readObjectStores(n)
	if b := s.singleBlock("metrics"); b != nil {
		n.Metrics = &MetricsSettings{}
		s.readMetrics(b, n.Metrics)
	}
	if b := s.singleBlock("accountant"); b != nil {
		n.Accountant = &AccountantSettings{}
		a := s.innerBlock(b)
		a.readAddresses("listen", &n.Accountant.Listen)
		a.readText("dir", &n.Accountant.Dir)
		a.readText("database", &n.Accountant.Database)
		a.readDuration("reconcile_every", `"1h"`, &n.Accountant.ReconcileEvery)
		a.checkReconcileEvery(n.Accountant.ReconcileEvery)
		a.reportUnknown()
	}
}

// checkReconcileEvery refuses an unsuitable ReconcileEvery. A short one compares little
// but the seconds by which claims are longer than attempts.
func (s *blockReader) checkReconcileEvery(d time.Duration) {
	if attr, ok := s.body.Attributes["reconcile_every"]; ok && (d < time.Second || d > 24*time.Hour) {
		s.addProblem(attr.Expr.Range(), `write it as reconcile_every = "1h"`,
			"reconcile_every: %v is not between 1s and 1d", d)
	}
}

// checkElection refuses an unsuitable Election. A short one would depose healthy leaders
// during a pause of a busy machine, and a long one leaves the pool without a leader.
func (s *blockReader) checkElection(d time.Duration) {
	if attr, ok := s.body.Attributes["election"]; ok && (d < 20*time.Millisecond || d > time.Minute) {
		s.addProblem(attr.Expr.Range(), `write it as election = "250ms"`, "election: %v is not between 20ms and 1m", d)
	}
}

func (s *blockReader) readTLS(b *hclsyntax.Block, to *TLSFiles) {
	t := s.innerBlock(b)
	t.readText("ca", &to.CA)
	t.readText("certificate", &to.Certificate)
	t.readText("key", &to.Key)
	t.reportUnknown()
	if to.CA == "" || to.Certificate == "" || to.Key == "" {
		s.addProblem(b.TypeRange, "roost pki issue makes the three files", "tls needs all of ca, certificate and key")
	}
}

func (s *blockReader) readSchedd(b *hclsyntax.Block, to *ScheddSettings) {
	d := s.innerBlock(b)
	d.readText("socket", &to.Socket)
	d.readFileMode("socket_mode", &to.SocketMode)
	d.readAddresses("listen", &to.Listen)
	d.readDuration("job_lease", `"40m"`, &to.JobLease)
	d.readDuration("keep_history", `"90d"`, &to.KeepHistory)
	d.readBool("allow_root", &to.AllowRoot)
	d.readCount("max_queued", &to.MaxQueued)
	d.readCount("max_queued_of_user", &to.MaxOfUser)
	d.readSetting("dialect", `"torque"`, func(text string) (err error) {
		to.Dialect, err = roost.ParsePBSDialect(text)
		return err
	})
	d.readDuration("keep_completed", `"5m"`, &to.KeepCompleted)
	d.readSetting("submit_to", `"cell"`, func(text string) (err error) {
		to.SubmitTo, err = parseQueueChoice(text)
		return err
	})
	d.readList("flock", `"physics"`, &to.Flock, func(text string, at hcl.Range) {
		if !IsValidName(text) {
			d.addProblem(at, "write the names that roost peer list shows", "flock: %q is no name of a pool", text)
		}
	})
	d.readDuration("flock_wait", `"1m"`, &to.FlockWait)
	if b := d.singleBlock("submit_filter"); b != nil {
		readSubmitFilter(d, b, &to.Filter)
	}
	if b := d.singleBlock("job_hooks"); b != nil {
		readJobHooks(d, b, &to.Hooks)
	}
	if b := d.singleBlock("notify"); b != nil {
		d.readNotify(b, &to.Notify)
	}
	d.reportUnknown()
}

func (s *blockReader) readStartds(n *Node) {
	for _, b := range s.nestedBlocks("startd") {
		d := StartdSettings{}
		if len(b.Labels) > 1 {
			s.addProblem(b.LabelRanges[1], `as in: startd "n1" { … }`, "a startd has one name")
		}
		if len(b.Labels) > 0 {
			d.Name = b.Labels[0]
			s.checkName("startd", d.Name, b.LabelRanges[0])
		}
		if _, taken := n.Startd(d.Name); taken {
			s.addProblem(b.TypeRange, `give each its own name, as in: startd "n1" { … }`,
				"two startds have the same name")
		}
		t := s.innerBlock(b)
		t.readText("dir", &d.Dir)
		t.readStartdAddresses(&d.Listen)
		t.readCores("cpus", &d.Resources.CPU)
		t.readSize("memory", `"16GiB"`, &d.Resources.Memory)
		t.readSize("disk", `"100GiB"`, &d.Resources.Disk)
		readByteRate(t, "disk_io", `"500MB/s"`, &d.Resources.IO.Disk)
		readByteRate(t, "network", `"10Gbit/s"`, &d.Resources.IO.Network)
		t.readExpressions("attributes", &d.Attributes)
		t.readPolicy(&d)
		t.readSetting("stop_notice", `"30s"`, func(text string) (err error) {
			if d.StopNotice, err = roost.ParseDuration(text); err == nil &&
				(d.StopNotice <= 0 || d.StopNotice > maxStopNotice) {
				err = fmt.Errorf("%s is not above 0 and at most %v: together with saving checkpoints and stopping "+
					"the daemons it has to fit into systemd's stop timeout", text, maxStopNotice)
			}
			return err
		})
		t.readSetting("preemption_delay", `"1m"`, func(text string) (err error) {
			if d.PreemptionDelay, err = roost.ParseDuration(text); err == nil &&
				(d.PreemptionDelay < time.Second || d.PreemptionDelay > maxPreemptionDelay) {
				err = fmt.Errorf("%s is not from 1s to %v", text, maxPreemptionDelay)
			}
			return err
		})
		t.readSpares(&d.Spares)
		t.readPortRange(&d.Ports)
		t.readBool("allow_root", &d.AllowRoot)
		t.readText("criu", &d.CRIU)
		if g := t.singleBlock("gpus"); g != nil {
			t.readGPUs(g, &d.GPUs)
		}
		t.readUnits(&d)
		if q := t.singleBlock("queue"); q != nil {
			t.readQueue(q, &d.Queue)
		}
		if b := t.singleBlock("limits"); b != nil {
			t.readLimits(b, &d.Limits)
		}
		if b := t.singleBlock("scripts"); b != nil {
			t.readScripts(b, &d.Scripts)
		}
		if b := t.singleBlock("accounts"); b != nil {
			t.readAccounts(b, &d.Accounts)
		}
		t.readContainers(&d.Containers)
		t.readInputCache(&d.InputCache)
		t.readPilot(&d.Pilot)
		t.reportUnknown()
		n.Startds = append(n.Startds, d)
	}
}

// blockOwner returns what a block configures, for messages.
func blockOwner(title string) string {
	if title == "node file" {
		return "a node"
	}
	return "a " + title
}

// singleBlock returns the only block with a name, which has no label.
func (s *blockReader) singleBlock(name string) *hclsyntax.Block {
	found := s.nestedBlocks(name)
	if len(found) == 0 {
		return nil
	}
	if len(found) > 1 {
		s.addProblem(found[1].TypeRange, fmt.Sprintf("the first is on line %d", found[0].TypeRange.Start.Line),
			"%s has one %s", blockOwner(s.title), name)
	}
	if len(found[0].Labels) > 0 {
		s.addProblem(found[0].LabelRanges[0], fmt.Sprintf("write it as: %s { … }", name), "%s takes no name", name)
	}
	return found[0]
}

func (s *blockReader) innerBlock(b *hclsyntax.Block) *blockReader {
	return &blockReader{problemList: s.problemList, body: b.Body, title: b.Type}
}

// readName reads a name that may be part of an id or a host name.
func (s *blockReader) readName(setting string, to *string) {
	s.readText(setting, to)
	if attr, ok := s.body.Attributes[setting]; ok && *to != "" {
		s.checkName(setting, *to, attr.Expr.Range())
	}
}

func (s *blockReader) checkName(what, name string, at hcl.Range) {
	if !IsValidName(name) {
		s.addProblem(at, "use letters, digits, \".\", \"-\" and \"_\", at most 64 of them, and begin with a letter "+
			"or a digit", "%s: %q is not a name", what, name)
	}
}

func (s *blockReader) readAddresses(name string, to *[]string) {
	const example = `"unix:/run/roost/x.sock", "10.0.0.5:9701"`
	s.readList(name, example, to, func(text string, at hcl.Range) {
		s.checkAddress(name, "["+example+"]", text, at)
	})
}

func (s *blockReader) readSpares(to **int) {
	s.readSetting("spare_starters", "2", func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > MaxSpareStarters {
			return fmt.Errorf("%s is not a whole number from 0 to %d", text, MaxSpareStarters)
		}
		*to = &n
		return nil
	})
}

// readStartdAddresses reads where a startd is reached, which may be through relays.
func (s *blockReader) readStartdAddresses(to *[]string) {
	const example = `"10.0.0.5:9703"], or ["relay"`
	s.readList("listen", example, to, func(text string, at hcl.Range) {
		switch {
		case text == ListenRelay:
		case isRelayAddress(text):
			if err := checkRelayTarget(text); err != nil {
				s.addProblem(at, `write it as listen = ["relay:10.0.0.5:9701"]`, "listen: %v", err)
			}
		default:
			s.checkAddress("listen", "["+example+"]", text, at)
		}
	})
}

// readAddress reads one address.
func (s *blockReader) readAddress(name string, to *string) {
	s.readText(name, to)
	if attr, ok := s.body.Attributes[name]; ok && *to != "" {
		s.checkAddress(name, `"10.0.0.5:9701"`, *to, attr.Expr.Range())
	}
}

func (s *blockReader) checkAddress(name, example, text string, at hcl.Range) {
	_, target, err := rpc.SplitAddress(text)
	if err != nil {
		s.addProblem(at, fmt.Sprintf("write it as %s = %s", name, example), "%s: %q is not an address", name, text)
	} else if !isLocalAddress(text) && isWildcardAddress(target) {
		s.addProblem(at, "name the address by which the other nodes reach this one, as in \"10.0.0.5:9701\"",
			"%s: %q names no host", name, text)
	}
}

// isWildcardAddress reports whether a host:port has no specific host. Daemons advertise
// their listening address, so it needs one.
func isWildcardAddress(target string) bool {
	host := target[:strings.LastIndexByte(target, ':')]
	return host == "" || host == "0.0.0.0" || host == "[::]"
}
