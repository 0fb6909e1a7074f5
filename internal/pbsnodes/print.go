package pbsnodes

import (
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/qstat"
)

// Printer prints nodes in one of the formats.
type Printer interface {
	Print(n *Node) error
	// Unknown says that there is no node of that name. It reports whether that is printed; else the caller says it.
	Unknown(name string) (printed bool, err error)
	Close() error
}

// Header is what JSON begins with.
type Header struct {
	Now             time.Time
	Version, Server string
}

// New returns the printer that the options ask for.
func New(w io.Writer, o *Options, h Header) Printer {
	switch {
	case o.Format == JSON:
		return newDocument(w, o, h)
	case o.Format == XML:
		return &torqueTree{tree: qstat.NewNodeXML(w, len(o.Nodes) == 0), now: h.Now}
	case o.Summary:
		return &summary{w: w, jobs: o.Jobs, long: o.Long, delimiter: delimiter(o)}
	case o.Format == Delimited:
		return &delimited{w: w, delimiter: o.Delimiter}
	case o.Format == Torque:
		return &torqueLines{w: w, now: h.Now}
	}
	return &lines{w: w, zone: h.Now.Location()}
}

func delimiter(o *Options) string {
	if o.Format == Delimited {
		return o.Delimiter
	}
	return ""
}

// lines is the usual format: the name, and an attribute a line.
type lines struct {
	w    io.Writer
	zone *time.Location
}

func (l *lines) Print(n *Node) error {
	b := append([]byte(n.Name), '\n')
	for _, a := range n.attributes() {
		b = append(append(b, "     "...), a.Name...)
		if a.Resource != "" {
			b = append(append(b, '.'), a.Resource...)
		}
		b = append(b, " = "...)
		if strings.HasSuffix(a.Name, "_time") {
			seconds, _ := strconv.ParseInt(a.Value, 10, 64)
			a.Value = time.Unix(seconds, 0).In(l.zone).Format(time.ANSIC)
		}
		b = append(append(b, qstat.Visible(a.Value)...), '\n')
	}
	_, err := l.w.Write(append(b, '\n'))
	return err
}

func (l *lines) Unknown(string) (bool, error) { return false, nil }
func (l *lines) Close() error                 { return nil }

// delimited is -F dsv: a node a line.
type delimited struct {
	w         io.Writer
	delimiter string
}

func (d *delimited) Print(n *Node) error {
	b := append([]byte("Name="), n.Name...)
	for _, a := range n.attributes() {
		b = append(append(b, d.delimiter...), a.Name...)
		if a.Resource != "" {
			b = append(append(b, '.'), a.Resource...)
		}
		if a.Name == "jobs" {
			a.Value = strings.ReplaceAll(a.Value, " ", "")
		}
		b = append(append(b, '='), qstat.Visible(a.Value)...)
	}
	_, err := d.w.Write(append(b, '\n'))
	return err
}

func (d *delimited) Unknown(string) (bool, error) { return false, nil }
func (d *delimited) Close() error                 { return nil }
