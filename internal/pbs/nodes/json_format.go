package nodes

import (
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/pbs/qstat"
)

// jsonPrinter is -F json, formatted as by OpenPBS's library, with a tab for each level.
type jsonPrinter struct {
	w                         io.Writer
	buffer                    []byte
	summary, jobs, longFormat bool
	hasNode                   bool // a node was printed
}

func newDocument(w io.Writer, o *CommandOptions, h JSONHeader) *jsonPrinter {
	d := &jsonPrinter{w: w, summary: o.Summary, jobs: o.Jobs, longFormat: o.Long}
	d.buffer = append(d.buffer, "{\n\t\"timestamp\":\t"...)
	d.buffer = strconv.AppendInt(d.buffer, h.Now.Unix(), 10)
	d.writeMember(1, "pbs_version", quotedText(h.Version), false)
	d.writeMember(1, "pbs_server", quotedText(h.Server), false)
	d.writeMember(1, "nodes", "{", false)
	return d
}

// writeMember adds a name and a value in JSON, at a depth.
func (d *jsonPrinter) writeMember(depth int, name, value string, first bool) {
	if !first {
		d.buffer = append(d.buffer, ',')
	}
	d.buffer = append(append(append(d.buffer, '\n'), strings.Repeat("\t", depth)...), quotedText(name)...)
	d.buffer = append(append(d.buffer, ":\t"...), value...)
}

func (d *jsonPrinter) writeNode(name string) {
	d.writeMember(2, name, "{", !d.hasNode)
	d.hasNode = true
}

func (d *jsonPrinter) endObject() error {
	d.buffer = append(d.buffer, "\n\t\t}"...)
	return d.flush()
}

func (d *jsonPrinter) flush() error {
	_, err := d.w.Write(d.buffer)
	d.buffer = d.buffer[:0]
	return err
}

func (d *jsonPrinter) Print(n *Node) error {
	d.writeNode(n.Name)
	if d.summary {
		d.writeSummary(n)
		return d.endObject()
	}
	list := n.attributes()
	for i := 0; i < len(list); i++ {
		a := &list[i]
		switch {
		case a.Name == "jobs":
			d.writeMember(3, "jobs", jsonArray(n.jobIDs()), i == 0)
		case a.Resource == "":
			d.writeMember(3, a.Name, jsonValue(a.Value), i == 0)
		default:
			last := i
			for last+1 < len(list) && list[last+1].Name == a.Name {
				last++
			}
			d.writeResources(list[i:last+1], i == 0)
			i = last
		}
	}
	return d.endObject()
}

// writeResources adds the resources of an attribute. As in OpenPBS, assigned resources of
// 0 are left out.
func (d *jsonPrinter) writeResources(list []qstat.ObjectAttribute, first bool) {
	d.writeMember(3, list[0].Name, "{", first)
	any := false
	for _, a := range list {
		if a.Name == "resources_assigned" && strings.TrimRight(a.Value, "kb") == "0" {
			continue
		}
		d.writeMember(4, a.Resource, jsonValue(a.Value), !any)
		any = true
	}
	if any {
		d.buffer = append(d.buffer, "\n\t\t\t"...)
	}
	d.buffer = append(d.buffer, '}')
}

// writeSummary writes -S of a node.
func (d *jsonPrinter) writeSummary(n *Node) {
	r := summaryRowOf(n, d.jobs, d.longFormat)
	d.writeMember(3, "State", quotedText(r.state), true)
	text := func(name, value string) { d.writeMember(3, name, quotedText(value), false) }
	number := func(name string, value string) { d.writeMember(3, name, value, false) }
	if !d.jobs {
		text("OS", noValue)
		text("hardware", noValue)
		text("host", r.host)
		text("queue", noValue)
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
	d.writeMember(3, "jobs", jsonArray(r.jobs), false)
}

func (d *jsonPrinter) Unknown(name string) (bool, error) {
	d.writeNode(name)
	d.writeMember(3, name, quotedText(unknownNode), true)
	return true, d.endObject()
}

func (d *jsonPrinter) Close() error {
	if d.hasNode {
		d.buffer = append(d.buffer, "\n\t"...)
	}
	d.buffer = append(d.buffer, "}\n}\n"...)
	return d.flush()
}

func quotedText(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(strings.ToValidUTF8(s, "?")) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}

// jsonValue returns a number as it is, and other text as a string.
func jsonValue(s string) string {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && strconv.FormatInt(n, 10) == s {
		return s
	}
	return quotedText(s)
}

func jsonArray(list []string) string {
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = quotedText(s)
	}
	return "[" + strings.Join(texts, ", ") + "]"
}
