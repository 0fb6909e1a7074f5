package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// Write returns the node as a node file from which Load reads the same node. Zero fields
// are left out.
func Write(n *Node) []byte {
	w := fileWriter{&blockText{}}
	w.writeText("name", n.Name)
	w.writeText("pool", n.Pool)
	w.writeText("dir", n.Dir)
	w.writeText("file_system_domain", n.FileSystemDomain)
	w.writeList("collectors", n.Collectors)
	w.writeList("negotiators", n.Negotiators)
	w.writeText("checkpoint_server", n.ImageServer)
	w.writeText("accountant", n.AccountantAt)
	w.writeText("authority", n.AuthorityAt)
	if t := n.TLS; t != nil {
		b := w.writeBlock("tls")
		b.writeText("ca", t.CA)
		b.writeText("certificate", t.Certificate)
		b.writeText("key", t.Key)
	}
	w.writeAuthority(n.Authority)
	w.writeWeb(n.Web)
	w.writeCollector(n.Collector)
	if g := n.Negotiator; g != nil {
		b := w.writeBlock("negotiator")
		b.writeList("listen", g.Listen)
		b.writeDuration("cycle", g.Cycle)
		b.writeDuration("election", g.Election)
	}
	w.writeSchedd(n.Schedd)
	w.writeObjectStores(n.ObjectStores)
	w.writeCellQueue(n.CellQueue)
	if i := n.Images; i != nil {
		b := w.writeBlock("checkpoint_server")
		b.writeList("listen", i.Listen)
		b.writeText("dir", i.Dir)
		b.writeSize("max_size", i.Max)
		b.writeSize("max_files_of_user", i.MaxFilesOfUser)
		b.writeBool("checkpoints_at_submit_node", i.CheckpointsAtSubmitNode)
		b.writeObjects(i.Objects)
	}
	w.writeMetrics(n.Metrics)
	w.writeAccountant(n.Accountant)
	if n.Owner.File != "" {
		w.writeBlock("owner").writeText("file", n.Owner.File)
	}
	for _, d := range n.Startds {
		w.writeStartd(d)
	}
	var b strings.Builder
	w.to.write(&b, "")
	return []byte(b.String())
}

func (w fileWriter) writeAccountant(a *AccountantSettings) {
	if a == nil {
		return
	}
	b := w.writeBlock("accountant")
	b.writeList("listen", a.Listen)
	b.writeText("dir", a.Dir)
	b.writeText("database", a.Database)
	b.writeDuration("reconcile_every", a.ReconcileEvery)
}

// fileWriter writes settings to a block.
type fileWriter struct{ to *blockText }

func (w fileWriter) writeStartd(d StartdSettings) {
	b := w.writeBlock("startd", d.Name)
	b.writeText("dir", d.Dir)
	b.writeList("listen", d.Listen)
	b.writePilot(d.Pilot)
	if d.Resources.CPU != 0 {
		b.to.setAttribute("cpus", strconv.FormatFloat(d.Resources.CPU.Cores(), 'f', -1, 64))
	}
	b.writeSize("memory", d.Resources.Memory)
	b.writeSize("disk", d.Resources.Disk)
	b.writeByteRate("disk_io", d.Resources.IO.Disk)
	b.writeByteRate("network", d.Resources.IO.Network)
	b.writeText("start", d.Start)
	b.writeText("rank", d.Rank)
	b.writePolicy(d.Policy)
	b.writeDuration("stop_notice", d.StopNotice)
	b.writeDuration("preemption_delay", d.PreemptionDelay)
	b.writePortRange(d.Ports)
	if d.Spares != nil {
		b.to.setAttribute("spare_starters", strconv.Itoa(*d.Spares))
	}
	if len(d.Attributes) > 0 {
		b.to.setAttribute("attributes", objectText(slices.Sorted(maps.Keys(d.Attributes)), d.Attributes))
	}
	b.writeBool("allow_root", d.AllowRoot)
	b.writeText("criu", d.CRIU)
	b.writeUnits(d.Layout)
	b.writeBool("pin", d.Pin)
	b.writeQueue(d.Queue)
	b.writeGPUs(d.GPUs)
	b.writeLimits(d.Limits)
	b.writeScripts(d.Scripts)
	b.writeAccounts(d.Accounts)
	b.writeContainers(d.Containers)
	b.writeInputCache(d.InputCache)
}

func (w fileWriter) writeBlock(name string, labels ...string) fileWriter {
	return fileWriter{w.to.appendBlock(name, labels)}
}

func (w fileWriter) writeText(name, value string) {
	if value != "" {
		w.to.setAttribute(name, quotedText(value))
	}
}

func (w fileWriter) writeBool(name string, value bool) {
	if value {
		w.to.setAttribute(name, "true")
	}
}

func (w fileWriter) writeList(name string, values []string) {
	if len(values) == 0 {
		return
	}
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = quotedText(v)
	}
	w.to.setAttribute(name, "["+strings.Join(parts, ", ")+"]")
}

func (w fileWriter) writeDuration(name string, d time.Duration) {
	if d != 0 {
		w.writeText(name, d.String())
	}
}

// writeSize writes a size in the largest unit that divides it, so that nothing is
// rounded.
func (w fileWriter) writeSize(name string, b roost.Bytes) {
	if b == 0 {
		return
	}
	for _, u := range []struct {
		size roost.Bytes
		name string
	}{{roost.GiB, "GiB"}, {roost.MiB, "MiB"}, {roost.KiB, "KiB"}, {1, "B"}} {
		if b%u.size == 0 {
			w.writeText(name, strconv.FormatInt(int64(b/u.size), 10)+u.name)
			return
		}
	}
}

func (w fileWriter) writeSchedd(s *ScheddSettings) {
	if s == nil {
		return
	}
	b := w.writeBlock("schedd")
	b.writeText("socket", s.Socket)
	if s.SocketMode != 0 {
		b.writeText("socket_mode", fmt.Sprintf("%04o", s.SocketMode))
	}
	b.writeList("listen", s.Listen)
	b.writeLease(s)
	b.writeDuration("keep_history", s.KeepHistory)
	b.writeBool("allow_root", s.AllowRoot)
	if s.MaxQueued != 0 {
		b.writeNumber("max_queued", s.MaxQueued)
	}
	if s.MaxOfUser != 0 {
		b.writeNumber("max_queued_of_user", s.MaxOfUser)
	}
	b.writeText("dialect", string(s.Dialect))
	b.writeDuration("keep_completed", s.KeepCompleted)
	b.writeText("submit_to", string(s.SubmitTo))
	b.writeNotify(s.Notify)
	b.writeSubmitFilter(s.Filter)
	b.writeJobHooks(s.Hooks)
}

// writeLease writes how long tasks outlive the schedd's silence, and where they may run.
func (w fileWriter) writeLease(s *ScheddSettings) {
	w.writeDuration("job_lease", s.JobLease)
	w.writeList("flock", s.Flock)
	w.writeDuration("flock_wait", s.FlockWait)
}
