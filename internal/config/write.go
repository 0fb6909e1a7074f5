package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost"
)

// Write prints the node as a node file that Load reads back. Zero fields are left out.
func Write(n *Node) []byte {
	f := hclwrite.NewEmptyFile()
	w := writer{f.Body()}
	w.text("name", n.Name)
	w.text("pool", n.Pool)
	w.text("dir", n.Dir)
	w.text("file_system_domain", n.FileSystemDomain)
	w.list("collectors", n.Collectors)
	w.list("negotiators", n.Negotiators)
	w.text("checkpoint_server", n.ImageServer)
	w.text("authority", n.AuthorityAt)
	if t := n.TLS; t != nil {
		b := w.block("tls")
		b.text("ca", t.CA)
		b.text("certificate", t.Certificate)
		b.text("key", t.Key)
	}
	w.authority(n.Authority)
	if c := n.Collector; c != nil {
		w.block("collector").list("listen", c.Listen)
	}
	if g := n.Negotiator; g != nil {
		b := w.block("negotiator")
		b.list("listen", g.Listen)
		b.duration("cycle", g.Cycle)
		b.duration("election", g.Election)
	}
	if s := n.Schedd; s != nil {
		b := w.block("schedd")
		b.text("socket", s.Socket)
		if s.SocketMode != 0 {
			b.text("socket_mode", fmt.Sprintf("%04o", s.SocketMode))
		}
		b.list("listen", s.Listen)
		b.duration("job_lease", s.JobLease)
		b.duration("keep_history", s.KeepHistory)
		b.truth("allow_root", s.AllowRoot)
		if s.MaxQueued != 0 {
			b.to.SetAttributeValue("max_queued", cty.NumberIntVal(int64(s.MaxQueued)))
		}
		if s.MaxOfUser != 0 {
			b.to.SetAttributeValue("max_queued_of_user", cty.NumberIntVal(int64(s.MaxOfUser)))
		}
		b.text("dialect", string(s.Dialect))
		b.duration("keep_completed", s.KeepCompleted)
		b.notify(s.Notify)
	}
	if i := n.Images; i != nil {
		b := w.block("checkpoint_server")
		b.list("listen", i.Listen)
		b.text("dir", i.Dir)
		b.size("max_size", i.Max)
	}
	if n.Owner.File != "" {
		w.block("owner").text("file", n.Owner.File)
	}
	for _, d := range n.Startds {
		w.startd(d)
	}
	return f.Bytes()
}

type writer struct{ to *hclwrite.Body }

func (w writer) startd(d Startd) {
	b := w.block("startd", d.Name)
	b.text("dir", d.Dir)
	b.list("listen", d.Listen)
	if d.Resources.CPU != 0 {
		b.to.SetAttributeValue("cpus", cty.NumberFloatVal(d.Resources.CPU.Cores()))
	}
	b.size("memory", d.Resources.Memory)
	b.size("disk", d.Resources.Disk)
	b.text("start", d.Start)
	b.text("rank", d.Rank)
	b.policy(d.Policy)
	b.duration("stop_notice", d.StopNotice)
	if len(d.Attributes) > 0 {
		attributes := map[string]cty.Value{}
		for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
			attributes[name] = cty.StringVal(d.Attributes[name])
		}
		b.to.SetAttributeValue("attributes", cty.ObjectVal(attributes))
	}
	b.truth("allow_root", d.AllowRoot)
	b.text("criu", d.CRIU)
	b.units(d.Layout)
	b.truth("pin", d.Pin)
	b.queue(d.Queue)
	b.gpus(d.GPUs)
	b.limits(d.Limits)
	b.scripts(d.Scripts)
	b.accounts(d.Accounts)
}

func (w writer) block(name string, labels ...string) writer {
	w.to.AppendNewline()
	return writer{w.to.AppendNewBlock(name, labels).Body()}
}

func (w writer) text(name, value string) {
	if value != "" {
		w.to.SetAttributeValue(name, cty.StringVal(value))
	}
}

func (w writer) truth(name string, value bool) {
	if value {
		w.to.SetAttributeValue(name, cty.True)
	}
}

func (w writer) list(name string, values []string) {
	if len(values) == 0 {
		return
	}
	parts := make([]cty.Value, len(values))
	for i, v := range values {
		parts[i] = cty.StringVal(v)
	}
	w.to.SetAttributeValue(name, cty.TupleVal(parts))
}

func (w writer) duration(name string, d time.Duration) {
	if d != 0 {
		w.text(name, d.String())
	}
}

// size prints the number in the largest unit that divides it, so that nothing is rounded.
func (w writer) size(name string, b roost.Bytes) {
	if b == 0 {
		return
	}
	for _, u := range []struct {
		size roost.Bytes
		name string
	}{{roost.GiB, "GiB"}, {roost.MiB, "MiB"}, {roost.KiB, "KiB"}, {1, "B"}} {
		if b%u.size == 0 {
			w.text(name, strconv.FormatInt(int64(b/u.size), 10)+u.name)
			return
		}
	}
}
