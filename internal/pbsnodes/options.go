package pbsnodes

import (
	"slices"
	"strings"

	"github.com/roost-batch/roost"
)

// Format is how nodes are printed.
type Format int

// The formats.
const (
	Lines Format = iota
	Delimited
	JSON
	Torque // its lines
	XML    // Torque's -x
)

// Deed is what is to be done.
type Deed int

// The deeds.
const (
	Show    Deed = iota // the nodes that are named
	All                 // show all
	Vnodes              // show those that are named with their vnodes: -H
	Marked              // list those that are down or offline: -l
	Offline             // take out of service
	Clear               // put into service again: -r, and -c of old
	Remark              // change the comment
)

// Options is what a command line of pbsnodes asks for.
type Options struct {
	Deed      Deed
	Vnodes    bool // -v: vnode by vnode
	Summary   bool // -S
	Jobs      bool // -j
	Long      bool // -L
	Format    Format
	Delimiter string
	Comment   string
	Commented bool   // -C was given
	Appended  bool   // -A of Torque: the comment is added to what there is
	Notes     bool   // -n of Torque, with -l: with comments
	Wanted    string // of Torque, behind -l: the state of the nodes that are listed; empty: down or offline
	Quiet     bool
	Server    string
	Nodes     []string
}

// Given is one option of a command line, 0 for an operand.
type Given struct {
	Letter byte
	Value  string
}

// Spec are the options in getopt's words: those of OpenPBS, and A, n, N and x of Torque.
const Spec = "aA:cC:dD:F:HjlLnN:oqrs:Svx"

// Usage is what is printed for a command line that makes no sense; the exit status is 1 then.
const Usage = "usage:\tpbsnodes [-{o|r}][-C comment][-s server] host host ...\n" +
	"\tpbsnodes -l [-s server]\n" +
	"\tpbsnodes [-s server] -v vnode vnode ...\n" +
	"\tpbsnodes -a[v][S[j][L]][-F format][-D delim][-s server]\n" +
	"\tpbsnodes -[H][S[j][L]][-F format][-D delim] host host ...\n" +
	"\tpbsnodes --version\n\n"

// TorqueUsage is the same for who speaks Torque.
const TorqueUsage = "usage:\tpbsnodes [-{c|o|r}] [-s server] [-n] [-N \"note\"] [-A \"append note\"] [-q] node ...\n" +
	"\tpbsnodes [-{a|x}] [-s server] [-q] [node]\n" +
	"\tpbsnodes -l [-s server] [-q] [-n] [state] [node ...]\n\n"

// unknownNode is what PBS says of a name that no node has.
const unknownNode = "Unknown node "

// Read understands a command line; false where it makes no sense. What goes with what is OpenPBS's: it depends on the order of the options, too. In Torque all
// nodes are shown where nothing is said, and those that are named with -a; -l takes a state before names.
func Read(given []Given, d roost.Dialect) (o Options, ok bool) {
	o.Delimiter, ok = "|", len(given) > 0 || d == roost.Torque
	showing := func() bool { return o.Deed == Show || o.Deed == All || o.Deed == Vnodes }
	become := func(d Deed, may bool) {
		ok = ok && may
		o.Deed = d
	}
	for _, g := range given {
		switch g.Letter {
		case 0:
			o.Nodes = append(o.Nodes, g.Value)
		case 'a':
			become(All, o.Deed == Show || o.Deed == All && o.Format == XML)
		case 'H':
			become(Vnodes, o.Deed == Show)
		case 'l':
			become(Marked, o.Deed == Show || o.Vnodes)
		case 'o', 'r', 'c':
			deed := Clear
			if g.Letter == 'o' {
				deed = Offline
			}
			become(deed, o.Deed == Show || o.Vnodes || o.Deed == Remark && g.Letter != 'c')
		case 'x':
			become(All, o.Deed == Show || o.Deed == All)
			o.Format = XML
		case 'n':
			o.Notes = true
		case 'C', 'N', 'A':
			o.Comment, o.Commented, o.Appended = g.Value, true, g.Letter == 'A'
			if g.Letter == 'N' && g.Value == "n" {
				o.Comment = ""
			}
			if o.Deed == Show {
				o.Deed = Remark
			} else {
				ok = ok && (o.Deed == Offline || o.Deed == Clear)
			}
		case 'D':
			o.Delimiter = g.Value
			ok = ok && showing()
		case 'F':
			ok = ok && o.format(g.Value)
		case 'j', 'L', 'S':
			ok = ok && showing()
			o.Jobs, o.Long, o.Summary = o.Jobs || g.Letter == 'j', o.Long || g.Letter == 'L', o.Summary || g.Letter == 'S'
		case 'q':
			o.Quiet = true
		case 's':
			o.Server = g.Value
		case 'v':
			ok = ok && (o.Deed == Show || o.Deed == All)
			o.Vnodes = true
		default: // -d, which would call nodes dead that are not
			ok = false
		}
	}
	if d == roost.Torque || o.Format == XML {
		o.torque()
	}
	named := len(o.Nodes) > 0
	return o, ok && (o.Deed == All || o.Deed == Marked && d == roost.Torque || o.Deed == Marked != named)
}

// torque makes of a command line what Torque does.
func (o *Options) torque() {
	if o.Format == Lines && !o.Summary && !o.Vnodes {
		o.Format = Torque
	}
	switch {
	case o.Deed == All && len(o.Nodes) > 0:
		o.Deed = Show
	case o.Deed == Show && len(o.Nodes) == 0:
		o.Deed = All
	case o.Deed == Marked && len(o.Nodes) > 0 && slices.Contains(torqueStates(), o.Nodes[0]):
		o.Wanted, o.Nodes = o.Nodes[0], o.Nodes[1:]
	}
}

// torqueStates are the words that may stand behind -l.
func torqueStates() []string {
	return []string{"free", "offline", "down", "reserve", "job-exclusive", "job-sharing", "busy", "time-shared", "state-unknown", "active", "all", "up"}
}

func (o *Options) format(name string) bool {
	for f, known := range []string{"default", "dsv", "json"} {
		if strings.EqualFold(name, known) {
			o.Format = Format(f)
			return true
		}
	}
	return false
}
