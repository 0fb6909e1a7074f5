package nodes

import (
	"slices"
	"strings"

	"github.com/roost-batch/roost"
)

// OutputFormat is an output format.
type OutputFormat int

// The formats.
const (
	Lines OutputFormat = iota
	Delimited
	JSON
	Torque // Torque's default format
	XML    // Torque's -x
)

// NodeAction is the action of a command line.
type NodeAction int

// The actions.
const (
	ShowNamed       NodeAction = iota // show the named nodes
	ShowAll                           // show all nodes
	ShowVnodes                        // -H: show the named nodes with their vnodes
	ListUnavailable                   // -l: list the nodes that are down or offline
	MarkOffline                       // take nodes out of service
	ClearOffline                      // -r, formerly -c: put nodes back into service
	SetComment                        // change the comment
)

// CommandOptions is a parsed command line of pbsnodes.
type CommandOptions struct {
	Action    NodeAction
	Vnodes    bool // -v: by vnode
	Summary   bool // -S
	Jobs      bool // -j
	Long      bool // -L
	Format    OutputFormat
	Delimiter string
	Comment   string
	Commented bool   // -C was given
	Appended  bool   // Torque's -A: append to the present comment
	Notes     bool   // Torque's -n with -l: with comments
	Wanted    string // Torque's state after -l, which selects nodes; empty: down or offline
	Quiet     bool
	Server    string
	Nodes     []string
}

// GivenOption is one option of a command line, or an operand with letter 0.
type GivenOption struct {
	Letter byte
	Value  string
}

// OptionSpec is the getopt string: the options of OpenPBS, and A, n, N and x of Torque.
const OptionSpec = "aA:cC:dD:F:HjlLnN:oqrs:Svx"

// Usage is the usage message for an invalid command line, whose exit status is 1.
const Usage = "usage:\tpbsnodes [-{o|r}][-C comment][-s server] host host ...\n" +
	"\tpbsnodes -l [-s server]\n" +
	"\tpbsnodes [-s server] -v vnode vnode ...\n" +
	"\tpbsnodes -a[v][S[j][L]][-F format][-D delim][-s server]\n" +
	"\tpbsnodes -[H][S[j][L]][-F format][-D delim] host host ...\n" +
	"\tpbsnodes --version\n\n"

// TorqueUsage is the usage message in the Torque dialect.
const TorqueUsage = "usage:\tpbsnodes [-{c|o|r}] [-s server] [-n] [-N \"note\"] [-A \"append note\"] [-q] node ...\n" +
	"\tpbsnodes [-{a|x}] [-s server] [-q] [node]\n" +
	"\tpbsnodes -l [-s server] [-q] [-n] [state] [node ...]\n\n"

// unknownNode is PBS's message for an unknown node name; the name follows.
const unknownNode = "Unknown node "

// ParseCommandLine parses a command line; ok is false if it is invalid. Which options
// combine is OpenPBS's rule, which depends on their order. In the Torque dialect all
// nodes are shown by default, and -a shows the named ones; -l takes a state before names.
func ParseCommandLine(given []GivenOption, d roost.PBSDialect) (o CommandOptions, ok bool) {
	o.Delimiter, ok = "|", len(given) > 0 || d == roost.Torque
	showing := func() bool { return o.Action == ShowNamed || o.Action == ShowAll || o.Action == ShowVnodes }
	become := func(d NodeAction, may bool) {
		ok = ok && may
		o.Action = d
	}
	for _, g := range given {
		switch g.Letter {
		case 0:
			o.Nodes = append(o.Nodes, g.Value)
		case 'a':
			become(ShowAll, o.Action == ShowNamed || o.Action == ShowAll && o.Format == XML)
		case 'H':
			become(ShowVnodes, o.Action == ShowNamed)
		case 'l':
			become(ListUnavailable, o.Action == ShowNamed || o.Vnodes)
		case 'o', 'r', 'c':
			deed := ClearOffline
			if g.Letter == 'o' {
				deed = MarkOffline
			}
			become(deed, o.Action == ShowNamed || o.Vnodes || o.Action == SetComment && g.Letter != 'c')
		case 'x':
			become(ShowAll, o.Action == ShowNamed || o.Action == ShowAll)
			o.Format = XML
		case 'n':
			o.Notes = true
		case 'C', 'N', 'A':
			o.Comment, o.Commented, o.Appended = g.Value, true, g.Letter == 'A'
			if g.Letter == 'N' && g.Value == "n" {
				o.Comment = ""
			}
			if o.Action == ShowNamed {
				o.Action = SetComment
			} else {
				ok = ok && (o.Action == MarkOffline || o.Action == ClearOffline)
			}
		case 'D':
			o.Delimiter = g.Value
			ok = ok && showing()
		case 'F':
			ok = ok && o.readFormat(g.Value)
		case 'j', 'L', 'S':
			ok = ok && showing()
			o.Jobs, o.Long, o.Summary = o.Jobs || g.Letter == 'j', o.Long || g.Letter == 'L', o.Summary ||
				g.Letter == 'S'
		case 'q':
			o.Quiet = true
		case 's':
			o.Server = g.Value
		case 'v':
			ok = ok && (o.Action == ShowNamed || o.Action == ShowAll)
			o.Vnodes = true
		default: // -d, which would mark down nodes that are not
			ok = false
		}
	}
	if d == roost.Torque || o.Format == XML {
		o.readTorque()
	}
	named := len(o.Nodes) > 0
	return o, ok && (o.Action == ShowAll || o.Action == ListUnavailable && d == roost.Torque ||
		o.Action == ListUnavailable != named)
}

// readTorque applies the rules of the Torque dialect.
func (o *CommandOptions) readTorque() {
	if o.Format == Lines && !o.Summary && !o.Vnodes {
		o.Format = Torque
	}
	switch {
	case o.Action == ShowAll && len(o.Nodes) > 0:
		o.Action = ShowNamed
	case o.Action == ShowNamed && len(o.Nodes) == 0:
		o.Action = ShowAll
	case o.Action == ListUnavailable && len(o.Nodes) > 0 && slices.Contains(torqueStateWords(), o.Nodes[0]):
		o.Wanted, o.Nodes = o.Nodes[0], o.Nodes[1:]
	}
}

// torqueStateWords lists the states that may follow -l.
func torqueStateWords() []string {
	return []string{"free", "offline", "down", "reserve", "job-exclusive", "job-sharing", "busy", "time-shared",
		"state-unknown", "active", "all", "up"}
}

func (o *CommandOptions) readFormat(name string) bool {
	for f, known := range []string{"default", "dsv", "json"} {
		if strings.EqualFold(name, known) {
			o.Format = OutputFormat(f)
			return true
		}
	}
	return false
}
