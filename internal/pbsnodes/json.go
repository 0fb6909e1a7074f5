package pbsnodes

import (
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/qstat"
)

// document is -F json, laid out as OpenPBS's library does, a tab a level.
type document struct {
	w                   io.Writer
	b                   []byte
	summary, jobs, long bool
	open                bool // there was a node
}

func newDocument(w io.Writer, o *Options, h Header) *document {
	d := &document{w: w, summary: o.Summary, jobs: o.Jobs, long: o.Long}
	d.b = append(d.b, "{\n\t\"timestamp\":\t"...)
	d.b = strconv.AppendInt(d.b, h.Now.Unix(), 10)
	d.member(1, "pbs_version", quoted(h.Version), false)
	d.member(1, "pbs_server", quoted(h.Server), false)
	d.member(1, "nodes", "{", false)
	return d
}

// member adds a name and a value that is JSON already, so many levels deep.
func (d *document) member(depth int, name, value string, first bool) {
	if !first {
		d.b = append(d.b, ',')
	}
	d.b = append(append(append(d.b, '\n'), strings.Repeat("\t", depth)...), quoted(name)...)
	d.b = append(append(d.b, ":\t"...), value...)
}

func (d *document) node(name string) {
	d.member(2, name, "{", !d.open)
	d.open = true
}

func (d *document) end() error {
	d.b = append(d.b, "\n\t\t}"...)
	return d.flush()
}

func (d *document) flush() error {
	_, err := d.w.Write(d.b)
	d.b = d.b[:0]
	return err
}

func (d *document) Print(n *Node) error {
	d.node(n.Name)
	if d.summary {
		d.sum(n)
		return d.end()
	}
	list := n.attributes()
	for i := 0; i < len(list); i++ {
		a := &list[i]
		switch {
		case a.Name == "jobs":
			d.member(3, "jobs", array(n.ids()), i == 0)
		case a.Resource == "":
			d.member(3, a.Name, value(a.Value), i == 0)
		default:
			last := i
			for last+1 < len(list) && list[last+1].Name == a.Name {
				last++
			}
			d.resources(list[i:last+1], i == 0)
			i = last
		}
	}
	return d.end()
}

// resources adds what there is of each; of what is assigned only what is not 0, as OpenPBS does.
func (d *document) resources(list []qstat.Attribute, first bool) {
	d.member(3, list[0].Name, "{", first)
	any := false
	for _, a := range list {
		if a.Name == "resources_assigned" && strings.TrimRight(a.Value, "kb") == "0" {
			continue
		}
		d.member(4, a.Resource, value(a.Value), !any)
		any = true
	}
	if any {
		d.b = append(d.b, "\n\t\t\t"...)
	}
	d.b = append(d.b, '}')
}

// sum is -S of one node.
func (d *document) sum(n *Node) {
	r := rowOf(n, d.jobs, d.long)
	d.member(3, "State", quoted(r.state), true)
	text := func(name, value string) { d.member(3, name, quoted(value), false) }
	number := func(name string, value string) { d.member(3, name, value, false) }
	if !d.jobs {
		text("OS", none)
		text("hardware", none)
		text("host", r.host)
		text("queue", none)
		text("Memory", r.mem)
		number("ncpus", r.cpus)
		number("nmics", r.mics)
		number("ngpus", r.gpus)
		text("comment", r.comment)
		return
	}
	number("Total Jobs", strconv.Itoa(r.running+r.suspended))
	number("Running Jobs", strconv.Itoa(r.running))
	number("Suspended Jobs", strconv.Itoa(r.suspended))
	text("mem f/t", r.mem)
	text("ncpus f/t", r.cpus)
	text("nmics f/t", r.mics)
	text("ngpus f/t", r.gpus)
	d.member(3, "jobs", array(r.jobs), false)
}

func (d *document) Unknown(name string) (bool, error) {
	d.node(name)
	d.member(3, name, quoted(unknownNode), true)
	return true, d.end()
}

func (d *document) Close() error {
	if d.open {
		d.b = append(d.b, "\n\t"...)
	}
	d.b = append(d.b, "}\n}\n"...)
	return d.flush()
}

func quoted(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(strings.ToValidUTF8(s, "?")) // a text always has a form
	return strings.TrimSuffix(b.String(), "\n")
}

// value is a number where it is one, else a text.
func value(s string) string {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && strconv.FormatInt(n, 10) == s {
		return s
	}
	return quoted(s)
}

func array(list []string) string {
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = quoted(s)
	}
	return "[" + strings.Join(texts, ", ") + "]"
}
