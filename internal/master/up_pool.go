package master

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
)

// UpOptions describes the pool that Up makes.
type UpOptions struct {
	Dir     string         // directory of the pool; empty: config.PoolDir chooses
	Nodes   int            // number of startds; default 1
	CPUs    roost.MilliCPU // CPU of all nodes together; default: what the machine has
	Memory  roost.Bytes    // memory of all nodes together; default: what the machine has
	Desktop bool           // its nodes run tasks only while nobody uses the machine
	NoWeb   bool           // without the web daemon
	DNS     string         // "host:port" where the names of services are served; empty: nowhere
	Stdout  io.Writer      // for a short text when the pool is ready; nil for none
	Program string         // as in RunOptions
}

// maxNodes bounds the startds on one machine: each is a process.
const maxNodes = 256

// Up runs a whole pool on this machine until ctx ends. It has one collector, negotiator
// and schedd and some startds, on unix sockets in a directory that only this user can
// enter, below one that only this user can change. When Up returns only the directory is
// left.
func Up(ctx context.Context, opt UpOptions) error {
	if opt.Nodes == 0 {
		opt.Nodes = 1
	}
	if opt.Nodes < 1 || opt.Nodes > maxNodes {
		return fmt.Errorf("nodes: %w: %d is not between 1 and %d", roost.Usage, opt.Nodes, maxNodes)
	}
	dir, err := config.PoolDir(opt.Dir, os.Getenv)
	if err != nil {
		return err
	}
	if err := makePrivateDir(dir); err != nil {
		return err
	}
	began := time.Now()
	lock, err := prepareDirs(&config.Node{Dir: dir}, 0o700, 0o700)
	if err != nil {
		return err
	}
	defer lock.Close()
	node, err := writeNode(dir, opt)
	if err != nil {
		return err
	}
	log, err := openLog(filepath.Join(node.LogDir(), "master.log"), int64(maxLog))
	if err != nil {
		return fmt.Errorf("log: %w: %w", roost.NoOutput, err)
	}
	defer log.Close()
	return run(ctx, node, RunOptions{Program: opt.Program, Log: log, Strict: true, Sweep: true, Ready: func() {
		if opt.Stdout != nil {
			took := time.Since(began)
			io.WriteString(opt.Stdout, welcomeText(node, took, webLink(ctx, node), os.Getenv))
		}
	}})
}

// makePrivateDir creates the directory, or checks that only this user can change it.
// Another user who could write there could take over the pool. The mode of an existing
// directory is not changed: it may be a home directory, or /tmp.
func makePrivateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("directory %s: %w: %w", dir, roost.NoOutput, err)
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return fmt.Errorf("directory %s: %w: %w", dir, roost.NoOutput, err)
	}
	if int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("directory %s: %w: it belongs to user %d; choose another with --dir", dir,
			roost.PermissionDenied, st.Uid)
	}
	if st.Mode&0o022 != 0 {
		return fmt.Errorf("directory %s: %w: others can write to it (mode %04o); choose another with --dir", dir,
			roost.PermissionDenied, st.Mode&0o7777)
	}
	return nil
}

// writeNode writes the node file of the pool and loads it as the daemons will.
func writeNode(dir string, opt UpOptions) (*config.Node, error) {
	file := filepath.Join(dir, "etc", "node.hcl")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, fmt.Errorf("directory %s: %w: %w", filepath.Dir(file), roost.NoOutput, err)
	}
	node := singleHostNode(dir, opt)
	if opt.DNS != "" {
		node.Collector.DNS = &config.DNSSettings{Listen: []string{opt.DNS}}
	}
	if !opt.NoWeb {
		address, err := webAddress(file)
		if err != nil {
			return nil, err
		}
		// others cannot enter the directory of the pool: its daemons are all its user's
		node.Web = &config.WebSettings{Listen: []string{address}, User: upUser()}
	}
	text := append([]byte(config.UpNodeFileHeader+"\n"),
		config.Write(node)...)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, fmt.Errorf("node file: %w: %w", roost.NoOutput, err)
	}
	return config.Load(file)
}

// upUser returns the account of the web daemon, which matters if root starts the pool.
func upUser() string {
	if os.Geteuid() == 0 {
		return "root"
	}
	return ""
}

// singleHostNode returns the node of a pool on one machine. It runs jobs of root, too,
// because the pool belongs to the user who started it.
func singleHostNode(dir string, opt UpOptions) *config.Node {
	host := config.HostName()
	n := &config.Node{
		Name: host, Dir: dir,
		Collector: &config.CollectorSettings{}, Negotiator: &config.NegotiatorSettings{},
		Schedd: &config.ScheddSettings{AllowRoot: true}, Accountant: &config.AccountantSettings{},
		// container images are stored there; checkpoint images would only travel further
		Images: &config.CheckpointServerSettings{CheckpointsAtSubmitNode: true},
	}
	share := nodeResources(opt, machineResources(dir))
	for i := range opt.Nodes {
		d := config.StartdSettings{Name: host, Resources: share, AllowRoot: true}
		if opt.Desktop {
			d.Policy.Preset = "desktop"
		}
		if opt.Nodes > 1 {
			d.Name = fmt.Sprintf("n%d.%s", i+1, host[:min(len(host), 59)])
			d.Ports = dividePorts(i, opt.Nodes)
		}
		n.Startds = append(n.Startds, d)
	}
	if opt.Desktop {
		n.Owner.File = filepath.Join(dir, "etc", "owner.hcl")
	}
	return n
}

// dividePorts returns the part of one node in the default range of ports. The nodes have
// one host, where two tasks cannot have the same number. With more nodes than there are
// parts for, all of them have the whole range.
func dividePorts(index, nodes int) config.PortRange {
	whole := config.PortRange{}.OrDefault()
	part := (int(whole.Last) - int(whole.First) + 1) / nodes
	if part < roost.MaxPorts {
		return config.PortRange{}
	}
	first := int(whole.First) + index*part
	return config.PortRange{First: uint16(first), Last: uint16(first + part - 1)}
}

// nodeResources returns what each node offers. A single node without a setting measures
// the machine itself.
func nodeResources(opt UpOptions, whole roost.Resources) roost.Resources {
	if opt.Nodes == 1 {
		return roost.Resources{CPU: opt.CPUs, Memory: opt.Memory}
	}
	if opt.CPUs > 0 {
		whole.CPU = opt.CPUs
	}
	if opt.Memory > 0 {
		whole.Memory = opt.Memory
	}
	n := roost.Bytes(opt.Nodes)
	return roost.Resources{
		CPU:    divideCores(whole.CPU, opt.Nodes),
		Memory: whole.Memory / n / roost.MiB * roost.MiB,
		Disk:   whole.Disk / n / roost.MiB * roost.MiB,
	}
}

// divideCores divides the CPU into whole cores, at least one for each node. On a machine
// with fewer cores than nodes they share cores.
func divideCores(cpu roost.MilliCPU, nodes int) roost.MilliCPU {
	return max(cpu/roost.MilliCPU(nodes)/1000*1000, 1000)
}

// machineResources measures the resources to divide over the nodes.
func machineResources(dir string) roost.Resources {
	r := roost.Resources{CPU: roost.MilliCPU(runtime.NumCPU()) * 1000}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		r.Memory = roost.Bytes(uint64(info.Totalram) * uint64(info.Unit))
	}
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) == nil {
		r.Disk = roost.Bytes(fs.Bavail * uint64(fs.Bsize))
	}
	return r
}

// welcomeText returns the text for a user who has just started a pool.
func welcomeText(n *config.Node, took time.Duration, link string, getenv func(string) string) string {
	var b strings.Builder
	cpus := roost.MilliCPU(runtime.NumCPU()) * 1000
	if c := n.Startds[0].Resources.CPU; c > 0 {
		cpus = c * roost.MilliCPU(len(n.Startds))
	}
	nodes := "1 node"
	if len(n.Startds) > 1 {
		nodes = fmt.Sprintf("%d nodes", len(n.Startds))
	}
	fmt.Fprintf(&b, "A pool is up after %v: %s, %v cpus, in %s\n\n", took.Round(time.Millisecond), nodes, cpus, n.Dir)
	fmt.Fprintf(&b, "In another terminal:\n\n")
	if usual, err := config.PoolDir("", getenv); err != nil || usual != n.Dir || getenv("ROOST_DIR") != "" {
		fmt.Fprintf(&b, "    export ROOST_DIR=%s\n", shellQuote(n.Dir))
	}
	b.WriteString("    roost run -- echo hello     run a command in the pool\n")
	b.WriteString("    roost submit job.hcl        submit a job file\n")
	b.WriteString("    roost jobs                  show the state of jobs\n")
	if n.Web != nil {
		b.WriteString("    roost web login             print a link to its pages\n")
	}
	b.WriteString("\n")
	if link != "" {
		fmt.Fprintf(&b, "Its pages, with a link that can be used once and within a minute:\n\n    %s\n\n", link)
	}
	if d := n.Collector.DNS; d != nil {
		host, port, _ := net.SplitHostPort(d.Listen[0])
		fmt.Fprintf(&b, "The names of its services, over DNS, as of a service \"web\" of ann:\n\n"+
			"    dig @%s -p %s web.ann.%s.%s\n\n", host, port, d.Cell, d.Domain)
	}
	b.WriteString("Ctrl-C stops the pool. Jobs that are waiting go on when it is started again.\n")
	return b.String()
}

// shellQuote quotes a path as one word for a shell.
func shellQuote(path string) string {
	if !strings.ContainsFunc(path, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("/._-+:@%", r))
	}) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
