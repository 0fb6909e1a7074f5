package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// Defaults of a node file.
const (
	defaultCycle    = 5 * time.Second
	defaultJobLease = 40 * time.Minute

	// defaultCompletedRetention is Torque's default.
	defaultCompletedRetention = 5 * time.Minute

	defaultMaxQueued = 2_000_000
)

// SystemDir is the directory of the daemons of a host's own pool.
const SystemDir = "/var/lib/roost"

// fillDefaults sets defaults for what a node file leaves out. A file without a directory
// describes the host's own pool, whose users' socket is in /run/roost and open to all. A
// file with one describes a pool of the user who starts it. Relative paths are relative
// to the file's directory, at.
func (n *Node) fillDefaults(at, host string) {
	setDefault(&n.Name, host)
	setDefault(&n.Pool, n.Name)
	setDefault(&n.FileSystemDomain, n.Name)
	run, mode := SystemRunDir, os.FileMode(0o666)
	if n.Dir == "" {
		n.Dir = SystemDir
	} else {
		n.Dir = joinBelow(at, n.Dir)
		run, mode = n.RunDir(), 0o600
	}
	if c := n.Collector; c != nil {
		c.fillDefaults(n)
	}
	if g := n.Negotiator; g != nil {
		fillListenAddress(&g.Listen, n.RunDir(), "negotiator")
		n.Negotiators = advertisedOrDefault(n.Negotiators, g.Listen)
		setDefaultDuration(&g.Cycle, defaultCycle)
	}
	if n.Schedd != nil {
		n.Schedd.fillDefaults(at, run, mode)
	}
	n.fillCellQueueDefaults()
	if i := n.Images; i != nil {
		setDefault(&i.Dir, filepath.Join(n.Dir, "checkpoint-server"))
		i.Dir = joinBelow(at, i.Dir)
		i.Objects.fillDefaults(at)
		fillListenAddress(&i.Listen, n.RunDir(), "checkpoint-server")
		setDefault(&n.ImageServer, AdvertisedAddress(i.Listen))
	}
	for i := range n.Startds {
		d := &n.Startds[i]
		setDefault(&d.Name, n.Name)
		setDefault(&d.Dir, filepath.Join(n.Dir, "startd", d.Name))
		d.Dir = joinBelow(at, d.Dir)
		if d.GPUs.Library != "" {
			d.GPUs.Library = joinBelow(at, d.GPUs.Library)
		}
		setDefault(&d.Start, "true")
		setDefault(&d.Rank, "0")
		d.Limits.fillDefaults()
		d.Scripts.fillDefaults()
		d.Accounts.fillDefaults(d.Policy.Preset)
		d.fillNoticeDefaults()
		fillListenAddress(&d.Listen, n.RunDir(), "startd-"+d.Name)
	}
	n.fillAuthorityDefaults(at)
	n.fillObserverDefaults(at)
	n.checkGPUSharing()
	setDefault(&n.Owner.File, OwnerFileName)
	n.Owner.File = joinBelow(at, n.Owner.File)
	if t := n.TLS; t != nil {
		t.CA, t.Certificate, t.Key = joinBelow(at, t.CA), joinBelow(at, t.Certificate), joinBelow(at, t.Key)
	}
}

// fillDefaults fills in what the node file leaves out. A relative socket lies below at.
func (s *ScheddSettings) fillDefaults(at, run string, mode fs.FileMode) {
	setDefault(&s.Socket, filepath.Join(run, SocketName))
	if !isLocalAddress(s.Socket) {
		s.Socket = "unix:" + joinBelow(at, s.Socket)
	}
	if s.SocketMode == 0 {
		s.SocketMode = mode
	}
	setDefaultDuration(&s.JobLease, defaultJobLease)
	setDefaultDuration(&s.KeepCompleted, defaultCompletedRetention)
	s.Dialect = cmp.Or(s.Dialect, roost.OpenPBS)
	s.Filter.fillDefaults()
	s.Hooks.fillDefaults()
	if s.MaxQueued == 0 {
		s.MaxQueued = defaultMaxQueued
	}
	if s.MaxOfUser == 0 {
		s.MaxOfUser = max(s.MaxQueued/2, 1)
	}
}

// fillObserverDefaults is for what only looks at the pool.
func (n *Node) fillObserverDefaults(at string) {
	n.fillAccountantDefaults(at)
	n.fillWebDefaults(at)
	n.Metrics.fillDefaults(at)
}

// reconcileEvery is the default of AccountantSettings.ReconcileEvery.
const reconcileEvery = time.Hour

func (n *Node) fillAccountantDefaults(at string) {
	if a := n.Accountant; a != nil {
		setDefault(&a.Dir, filepath.Join(n.Dir, "accountant"))
		if a.ReconcileEvery == 0 {
			a.ReconcileEvery = reconcileEvery
		}
		a.Dir = joinBelow(at, a.Dir)
		fillListenAddress(&a.Listen, n.RunDir(), "accountant")
		setDefault(&n.AccountantAt, AdvertisedAddress(a.Listen))
	}
}

func setDefault(to *string, value string) {
	if *to == "" {
		*to = value
	}
}

func setDefaultDuration(to *time.Duration, value time.Duration) {
	if *to == 0 {
		*to = value
	}
}

func fillListenAddress(to *[]string, run, name string) {
	if len(*to) == 0 {
		*to = []string{"unix:" + filepath.Join(run, name+".sock")}
	}
}

// advertisedOrDefault lets a node use its own daemon if it names no address of one.
func advertisedOrDefault(given, listen []string) []string {
	if len(given) > 0 {
		return given
	}
	return []string{AdvertisedAddress(listen)}
}

func joinBelow(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// checkNode checks a complete node for consistency: each daemon must be able to find
// those that it needs.
func (n *Node) checkNode() error {
	if n.Collectors == nil && (n.Negotiator != nil || n.Schedd != nil || n.Accountant != nil || len(n.Startds) > 0) {
		return fmt.Errorf("%w: no collector here and none named: add collectors = [\"host:port\"], or a "+
			"collector block", roost.BadConfig)
	}
	if err := n.checkRelays(); err != nil {
		return err
	}
	if n.Negotiators == nil && n.Schedd != nil {
		return fmt.Errorf("%w: a schedd and no negotiator: add negotiators = [\"host:port\"], or a negotiator block",
			roost.BadConfig)
	}
	if g := n.Negotiator; g != nil && !slices.Contains(n.Negotiators, n.OwnNegotiator()) {
		return fmt.Errorf("%w: negotiators = [%s] has to name all negotiators of the cell, and lacks that of this "+
			"node, which listens on %s: add its address, or take the negotiator block out",
			roost.BadConfig, quotedList(n.Negotiators), strings.Join(g.Listen, " and "))
	}
	all := slices.Concat(n.Collectors, n.Negotiators)
	if n.Collector != nil {
		all = append(all, n.Collector.Listen...)
	}
	if n.Negotiator != nil {
		all = append(all, n.Negotiator.Listen...)
	}
	if n.Schedd != nil {
		all = append(all, n.Schedd.Listen...)
	}
	if n.Images != nil {
		all = append(all, n.Images.Listen...)
	}
	if n.ImageServer != "" {
		all = append(all, n.ImageServer)
	}
	if n.Accountant != nil {
		all = append(all, n.Accountant.Listen...)
	}
	if n.AccountantAt != "" {
		all = append(all, n.AccountantAt)
	}
	if err := errors.Join(n.checkGPUs(), n.checkAuthority(), n.checkWeb(), n.checkMetrics()); err != nil {
		return err
	}
	dirs := map[string]string{}
	for _, d := range n.Startds {
		if other, taken := dirs[d.Dir]; taken {
			return fmt.Errorf("%w: startds %s and %s have the same directory %s", roost.BadConfig, other, d.Name, d.Dir)
		}
		dirs[d.Dir] = d.Name
		all = append(all, d.Listen...)
		for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
			if _, err := classad.ParseExpr(d.Attributes[name]); err != nil {
				return fmt.Errorf("%w: startd %s: attribute %s: %w (a text is written \"\\\"text\\\"\")",
					roost.BadConfig, d.Name, name, err)
			}
		}
	}
	for _, addr := range all {
		if n.TLS == nil && !isLocalAddress(addr) {
			return fmt.Errorf("%w: %s is reached over the network, and there is no tls block: Roost allows no "+
				"unauthenticated connections", roost.BadConfig, addr)
		}
	}
	return nil
}

// quotedList formats a list as in a node file.
func quotedList(list []string) string {
	var parts []string
	for _, text := range list {
		parts = append(parts, strconv.Quote(text))
	}
	return strings.Join(parts, ", ")
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }
func isDigit(r rune) bool  { return r >= '0' && r <= '9' }

// isAttributeName reports whether s can be the name of an ad's attribute.
func isAttributeName(s string) bool {
	for i, r := range s {
		if !isLetter(r) && r != '_' && (i == 0 || !isDigit(r)) {
			return false
		}
	}
	return s != ""
}

// defaultStopNotice returns the default of StopNotice, which depends on the policy. A
// person waits for a desktop to shut down, while a server gives its tasks time.
func defaultStopNotice(policy string) time.Duration {
	if policy == "server" {
		return 30 * time.Second
	}
	return 2 * time.Second
}

func (d *StartdSettings) fillNoticeDefaults() {
	setDefaultDuration(&d.PreemptionDelay, defaultPreemptionDelay)
	setDefaultDuration(&d.StopNotice, defaultStopNotice(d.Policy.Preset))
}

// The bounds of PreemptionDelay. A checkpoint on the way out may take as long.
const (
	defaultPreemptionDelay = 5 * time.Minute
	maxPreemptionDelay     = 24 * time.Hour
)

// maxStopNotice leaves time for checkpoints and for the daemons, out of the 75 seconds
// that the master waits.
const maxStopNotice = 45 * time.Second
