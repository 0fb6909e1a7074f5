package nodes

import (
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/pbs/qstat"
)

// NodePrinter prints nodes in one of the formats.
type NodePrinter interface {
	Print(n *Node) error
	// Unknown reports an unknown name. printed is false if the caller must print the
	// message.
	Unknown(name string) (printed bool, err error)
	Close() error
}

// JSONHeader is the data at the start of the JSON document.
type JSONHeader struct {
	Now             time.Time
	Version, Server string
}

// NewPrinter returns the printer that the options select.
func NewPrinter(w io.Writer, o *CommandOptions, h JSONHeader) NodePrinter {
	switch {
	case o.Format == JSON:
		return newDocument(w, o, h)
	case o.Format == XML:
		return &torqueXMLPrinter{tree: qstat.NewNodeXML(w, len(o.Nodes) == 0), now: h.Now}
	case o.Summary:
		return &summaryPrinter{w: w, jobs: o.Jobs, wideFormat: o.Long, delimiter: delimiterOrDefault(o)}
	case o.Format == Delimited:
		return &delimitedPrinter{w: w, delimiter: o.Delimiter}
	case o.Format == Torque:
		return &torqueLinePrinter{w: w, now: h.Now}
	}
	return &linePrinter{w: w, zone: h.Now.Location()}
}

func delimiterOrDefault(o *CommandOptions) string {
	if o.Format == Delimited {
		return o.Delimiter
	}
	return ""
}

// linePrinter is the default format: the name, and a line for each attribute.
type linePrinter struct {
	w    io.Writer
	zone *time.Location
}

func (l *linePrinter) Print(n *Node) error {
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
		b = append(append(b, qstat.VisibleText(a.Value)...), '\n')
	}
	_, err := l.w.Write(append(b, '\n'))
	return err
}

func (l *linePrinter) Unknown(string) (bool, error) { return false, nil }
func (l *linePrinter) Close() error                 { return nil }

// delimitedPrinter is -F dsv: a line for each node.
type delimitedPrinter struct {
	w         io.Writer
	delimiter string
}

func (d *delimitedPrinter) Print(n *Node) error {
	b := append([]byte("Name="), n.Name...)
	for _, a := range n.attributes() {
		b = append(append(b, d.delimiter...), a.Name...)
		if a.Resource != "" {
			b = append(append(b, '.'), a.Resource...)
		}
		if a.Name == "jobs" {
			a.Value = strings.ReplaceAll(a.Value, " ", "")
		}
		b = append(append(b, '='), qstat.VisibleText(a.Value)...)
	}
	_, err := d.w.Write(append(b, '\n'))
	return err
}

func (d *delimitedPrinter) Unknown(string) (bool, error) { return false, nil }
func (d *delimitedPrinter) Close() error                 { return nil }
