package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
)

// Bounds on a node file. The parser recurses, so depth is checked before it is started.
const (
	maxFile  = 256 << 10
	maxDepth = 64
)

// Load reads a node file and fills in what it leaves out. An error is of kind roost.NoInput when the file cannot be read, and otherwise of
// kind roost.BadConfig: its text shows every mistake with file, line, column, the line itself, a caret, the cause and the cure.
func Load(file string) (*Node, error) {
	text, err := readFile("node file", file)
	if err != nil {
		return nil, err
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	n, err := parse(file, text)
	if err != nil {
		return nil, err
	}
	n.File = path
	n.fill(filepath.Dir(path), HostName())
	if err := n.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return n, nil
}

// readFile reads a file of settings, within bounds.
func readFile(what, file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %w", what, file, roost.NoInput, cause(err))
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %w", what, file, roost.NoInput, cause(err))
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s %s: %w: it is larger than %v", what, file, roost.BadConfig, roost.Bytes(maxFile))
	}
	return text, nil
}

// cause takes the operation and the path off an error that will be shown with them.
func cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// parse reads the text of a node file. What it leaves out stays zero.
func parse(file string, text []byte) (*Node, error) {
	p := newProblems(file, text)
	if at, ok := tooDeep(text); ok {
		p.add(at, "", "brackets are nested more than %d deep", maxDepth)
		return nil, p.err()
	}
	parsed, diags := hclsyntax.ParseConfig(text, file, hcl.InitialPos)
	if diags.HasErrors() {
		p.addParser(diags)
		return nil, p.err()
	}
	n := readNode(p, parsed.Body.(*hclsyntax.Body))
	if err := p.err(); err != nil {
		return nil, err
	}
	n.Warnings = p.warnings()
	return n, nil
}

func tooDeep(text []byte) (hcl.Range, bool) {
	depth := 0
	for i, c := range text {
		switch c {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth = max(depth-1, 0)
		}
		if depth > maxDepth {
			line, last := bytes.Count(text[:i], []byte("\n"))+1, bytes.LastIndexByte(text[:i], '\n')
			at := hcl.Pos{Line: line, Column: i - last, Byte: i}
			return hcl.Range{Start: at, End: at}, true
		}
	}
	return hcl.Range{}, false
}

func readNode(p *problems, body *hclsyntax.Body) *Node {
	n := &Node{}
	s := &section{problems: p, body: body, title: "node file"}
	s.name("name", &n.Name)
	s.text("pool", &n.Pool)
	s.text("dir", &n.Dir)
	s.name("file_system_domain", &n.FileSystemDomain)
	s.addresses("collectors", &n.Collectors)
	s.addresses("negotiators", &n.Negotiators)
	s.address("checkpoint_server", &n.ImageServer)
	s.address("authority", &n.AuthorityAt)
	if b := s.only("tls"); b != nil {
		n.TLS = &TLS{}
		s.readTLS(b, n.TLS)
	}
	if b := s.only("authority"); b != nil {
		n.Authority = &Authority{}
		s.readAuthority(b, n.Authority)
	}
	if b := s.only("collector"); b != nil {
		n.Collector = &Collector{}
		c := s.inside(b)
		c.addresses("listen", &n.Collector.Listen)
		c.done()
	}
	if b := s.only("negotiator"); b != nil {
		n.Negotiator = &Negotiator{}
		g := s.inside(b)
		g.addresses("listen", &n.Negotiator.Listen)
		g.duration("cycle", `"5s"`, &n.Negotiator.Cycle)
		g.duration("election", `"250ms"`, &n.Negotiator.Election)
		g.checkElection(n.Negotiator.Election)
		g.done()
	}
	if b := s.only("schedd"); b != nil {
		n.Schedd = &Schedd{}
		s.readSchedd(b, n.Schedd)
	}
	if b := s.only("checkpoint_server"); b != nil {
		n.Images = &CheckpointServer{}
		i := s.inside(b)
		i.addresses("listen", &n.Images.Listen)
		i.text("dir", &n.Images.Dir)
		i.size("max_size", `"500GiB"`, &n.Images.Max)
		i.done()
	}
	s.readStartds(n)
	if b := s.only("owner"); b != nil {
		o := s.inside(b)
		o.text("file", &n.Owner.File)
		o.done()
	}
	s.done()
	if n.Roles() == nil && len(p.found) == 0 {
		p.add(body.MissingItemRange(), "add a block for each daemon: collector, negotiator, schedd, startd, checkpoint_server, authority", "the node has no daemons")
	}
	return n
}

// checkElection refuses what is shorter than a pause of a busy machine, which would depose leaders that are well, and what is no care at all.
func (s *section) checkElection(d time.Duration) {
	if attr, ok := s.body.Attributes["election"]; ok && (d < 20*time.Millisecond || d > time.Minute) {
		s.add(attr.Expr.Range(), `write it as election = "250ms"`, "election: %v is not between 20ms and 1m", d)
	}
}

func (s *section) readTLS(b *hclsyntax.Block, to *TLS) {
	t := s.inside(b)
	t.text("ca", &to.CA)
	t.text("certificate", &to.Certificate)
	t.text("key", &to.Key)
	t.done()
	if to.CA == "" || to.Certificate == "" || to.Key == "" {
		s.add(b.TypeRange, "roost pki issue makes the three files", "tls needs all of ca, certificate and key")
	}
}

func (s *section) readSchedd(b *hclsyntax.Block, to *Schedd) {
	d := s.inside(b)
	d.text("socket", &to.Socket)
	d.mode("socket_mode", &to.SocketMode)
	d.addresses("listen", &to.Listen)
	d.duration("job_lease", `"40m"`, &to.JobLease)
	d.duration("keep_history", `"90d"`, &to.KeepHistory)
	d.truth("allow_root", &to.AllowRoot)
	d.count("max_queued", &to.MaxQueued)
	d.count("max_queued_of_user", &to.MaxOfUser)
	d.set("dialect", `"torque"`, func(text string) (err error) {
		to.Dialect, err = roost.ParseDialect(text)
		return err
	})
	d.duration("keep_completed", `"5m"`, &to.KeepCompleted)
	if b := d.only("notify"); b != nil {
		d.readNotify(b, &to.Notify)
	}
	d.done()
}

func (s *section) readStartds(n *Node) {
	for _, b := range s.nested("startd") {
		d := Startd{}
		if len(b.Labels) > 1 {
			s.add(b.LabelRanges[1], `as in: startd "n1" { … }`, "a startd has one name")
		}
		if len(b.Labels) > 0 {
			d.Name = b.Labels[0]
			s.checkName("startd", d.Name, b.LabelRanges[0])
		}
		if _, taken := n.Startd(d.Name); taken {
			s.add(b.TypeRange, `give each its own name, as in: startd "n1" { … }`, "two startds have the same name")
		}
		t := s.inside(b)
		t.text("dir", &d.Dir)
		t.addresses("listen", &d.Listen)
		t.cores("cpus", &d.Resources.CPU)
		t.size("memory", `"16GiB"`, &d.Resources.Memory)
		t.size("disk", `"100GiB"`, &d.Resources.Disk)
		t.expressions("attributes", &d.Attributes)
		t.readPolicy(&d)
		t.set("stop_notice", `"30s"`, func(text string) (err error) {
			if d.StopNotice, err = roost.ParseDuration(text); err == nil && (d.StopNotice <= 0 || d.StopNotice > longestStopNotice) {
				err = fmt.Errorf("%s is not above 0 and at most %v: with the saving of checkpoints and the ends of the daemons it has to fit into what systemd waits", text, longestStopNotice)
			}
			return err
		})
		t.truth("allow_root", &d.AllowRoot)
		t.text("criu", &d.CRIU)
		if g := t.only("gpus"); g != nil {
			t.readGPUs(g, &d.GPUs)
		}
		t.readUnits(&d)
		if q := t.only("queue"); q != nil {
			t.readQueue(q, &d.Queue)
		}
		if b := t.only("limits"); b != nil {
			t.readLimits(b, &d.Limits)
		}
		if b := t.only("scripts"); b != nil {
			t.readScripts(b, &d.Scripts)
		}
		if b := t.only("accounts"); b != nil {
			t.readAccounts(b, &d.Accounts)
		}
		t.done()
		n.Startds = append(n.Startds, d)
	}
}

// bearer names what a section is for, for people.
func bearer(title string) string {
	if title == "node file" {
		return "a node"
	}
	return "a " + title
}

// only returns the one block of that name, which has no label.
func (s *section) only(name string) *hclsyntax.Block {
	found := s.nested(name)
	if len(found) == 0 {
		return nil
	}
	if len(found) > 1 {
		s.add(found[1].TypeRange, fmt.Sprintf("the first is on line %d", found[0].TypeRange.Start.Line), "%s has one %s", bearer(s.title), name)
	}
	if len(found[0].Labels) > 0 {
		s.add(found[0].LabelRanges[0], fmt.Sprintf("write it as: %s { … }", name), "%s takes no name", name)
	}
	return found[0]
}

func (s *section) inside(b *hclsyntax.Block) *section {
	return &section{problems: s.problems, body: b.Body, title: b.Type}
}

// name reads a name as it may stand in an id or a host's name.
func (s *section) name(setting string, to *string) {
	s.text(setting, to)
	if attr, ok := s.body.Attributes[setting]; ok && *to != "" {
		s.checkName(setting, *to, attr.Expr.Range())
	}
}

func (s *section) checkName(what, name string, at hcl.Range) {
	if !ValidName(name) {
		s.add(at, "use letters, digits, \".\", \"-\" and \"_\", at most 64 of them, and begin with a letter or a digit", "%s: %q is not a name", what, name)
	}
}

func (s *section) addresses(name string, to *[]string) {
	const example = `"unix:/run/roost/x.sock", "10.0.0.5:9701"`
	s.list(name, example, to, func(text string, at hcl.Range) {
		s.checkAddress(name, "["+example+"]", text, at)
	})
}

// address reads one address.
func (s *section) address(name string, to *string) {
	s.text(name, to)
	if attr, ok := s.body.Attributes[name]; ok && *to != "" {
		s.checkAddress(name, `"10.0.0.5:9701"`, *to, attr.Expr.Range())
	}
}

func (s *section) checkAddress(name, example, text string, at hcl.Range) {
	_, target, err := rpc.SplitAddress(text)
	if err != nil {
		s.add(at, fmt.Sprintf("write it as %s = %s", name, example), "%s: %q is not an address", name, text)
	} else if !local(text) && everywhere(target) {
		s.add(at, "name the address by which the other nodes reach this one, as in \"10.0.0.5:9701\"", "%s: %q names no host", name, text)
	}
}

// everywhere reports whether a host:port leaves the host open. Daemons advertise where they listen, so it may not.
func everywhere(target string) bool {
	host := target[:strings.LastIndexByte(target, ':')]
	return host == "" || host == "0.0.0.0" || host == "[::]"
}
