package names

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// State is the state of a task of a service.
type State uint8

// The states. Only Ready tasks are in DNS answers for the name of a job.
const (
	Starting State = iota + 1 // the attempt has started and no check has answered
	Unready                   // a check fails
	Ready
	Leaving // the task ends soon and takes no new connections
	Lost    // its machine is silent
)

// String returns the state as in ads and in JSON.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

var stateNames = [...]string{"", "starting", "unready", "ready", "leaving", "lost"}

// parseState returns the state with a name. Machines cannot claim that they are silent.
func parseState(text string) (State, bool) {
	for s := Starting; s < Lost; s++ {
		if stateNames[s] == text {
			return s, true
		}
	}
	return 0, false
}

// Port is a named port of a task.
type Port struct {
	Name   string
	Number uint16
}

// TaskKey identifies a task in the zone. Two jobs of one owner may have the same name.
type TaskKey struct {
	Owner, Name string // DNS labels in lower case
	Job         string // "123.POOL"
	Index       uint32
}

// Endpoint is where one attempt of a task is reached. It never changes.
type Endpoint struct {
	TaskKey
	Attempt  uint32
	Revision uint64
	State    State
	Weight   uint16
	Address  netip.Addr
	Ports    []Port // in the order of the ad
	Node     string // the machine of the ad
	proof    rightProof
}

// rightProof shows that a schedd lets the endpoint have its name.
type rightProof struct {
	expires           int64 // unix seconds
	signature, signer string
}

// right returns the right that the endpoint needs.
func (e *Endpoint) right() roost.NameRight {
	return roost.NameRight{Job: e.Job, Index: e.Index, Attempt: e.Attempt, Owner: e.Owner, Name: e.Name,
		Machine: e.Node, Expires: e.proof.expires}
}

// Port returns the number of a named port.
func (e *Endpoint) Port(name string) (uint16, bool) {
	for _, p := range e.Ports {
		if p.Name == name {
			return p.Number, true
		}
	}
	return 0, false
}

// Bounds on one endpoint.
const (
	maxLabel    = 63 // bytes, of RFC 1035
	maxPortName = 15 // bytes, of RFC 6335
	maxPorts    = 64
	maxJobID    = 256

	maxSignature = 256 // bytes in base64
)

// parseEndpoint parses one element of Endpoints. Errors wrap roost.Invalid.
func parseEndpoint(text string) (*Endpoint, error) {
	ad, err := classad.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", roost.Invalid, err)
	}
	r := literalReader{ad: ad}
	e := &Endpoint{
		TaskKey: TaskKey{Owner: r.label("Owner"), Name: r.label("Name"), Job: r.text("Job", maxJobID),
			Index: uint32(r.number("Index", 0, 1<<31))},
		Attempt: uint32(r.number("Attempt", 1, 1<<31)), Revision: uint64(r.number("Revision", 0, 1<<62)),
		Weight: uint16(r.number("Weight", 0, 65535)),
	}
	if !r.has("Weight") {
		e.Weight = 1
	}
	if e.Job == "" {
		r.fail("Job", "is missing")
	}
	state := r.text("State", maxLabel)
	known := false
	if e.State, known = parseState(state); !known {
		r.fail("State", fmt.Sprintf("%q is none", state))
	}
	e.Address = r.address()
	e.Ports = r.ports()
	e.proof = rightProof{r.number("Expires", 0, 1<<40), r.text("Signature", maxSignature), r.text("Signer", maxLabel)}
	return e, r.err
}

// literalReader reads attributes of a nested ad. They must be literals: an expression
// could have another value each time. err is the first error.
type literalReader struct {
	ad  *classad.Ad
	err error
}

func (r *literalReader) fail(name, why string) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: %w: %s", name, roost.Invalid, why)
	}
}

func (r *literalReader) has(name string) bool { _, ok := r.ad.Lookup(name); return ok }

// literal returns the value of an attribute, UNDEFINED if it is missing.
func (r *literalReader) literal(name string) classad.Value {
	e, ok := r.ad.Lookup(name)
	if !ok {
		return classad.UndefinedValue()
	}
	v, ok := e.Literal()
	if !ok {
		r.fail(name, "is no literal")
	}
	return v
}

func (r *literalReader) text(name string, most int) string {
	v := r.literal(name)
	s, ok := v.Str()
	switch {
	case v.IsUndefined():
		return ""
	case !ok:
		r.fail(name, "is no text")
	case len(s) > most:
		r.fail(name, fmt.Sprintf("has %d bytes, and %d is the most", len(s), most))
	}
	return s
}

func (r *literalReader) number(name string, least, most int64) int64 {
	v := r.literal(name)
	if v.IsUndefined() && least <= 0 {
		return 0
	}
	n, ok := v.Int()
	if !ok || n < least || n > most {
		r.fail(name, fmt.Sprintf("is no number from %d to %d", least, most))
		return least
	}
	return n
}

// address returns the address, the zero one if it is missing.
func (r *literalReader) address() netip.Addr {
	text := r.text("Address", maxJobID)
	if text == "" {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" {
		r.fail("Address", "is no numeric address")
	}
	return a.Unmap()
}

// label returns a DNS label in lower case.
func (r *literalReader) label(name string) string {
	s := r.text(name, maxLabel)
	if !roost.IsDNSLabel(s) {
		r.fail(name, fmt.Sprintf("%q is no DNS label: up to 63 letters, digits and hyphens", s))
	}
	return strings.ToLower(s)
}

// ports reads the nested ad Ports, which has a number for each name.
func (r *literalReader) ports() []Port {
	if !r.has("Ports") {
		return nil
	}
	nested, ok := r.ad.Sub("Ports")
	if !ok || nested.Len() > maxPorts {
		r.fail("Ports", fmt.Sprintf("is no nested ad of up to %d ports", maxPorts))
		return nil
	}
	list := make([]Port, 0, nested.Len())
	inner := literalReader{ad: nested}
	for _, name := range nested.Names() {
		if !roost.IsDNSLabel(strings.ReplaceAll(name, "_", "-")) || len(name) > maxPortName {
			r.fail("Ports", fmt.Sprintf("%q is no name of a port", name))
		}
		list = append(list, Port{portName(name), uint16(inner.number(name, 1, 65535))})
	}
	if inner.err != nil {
		r.fail("Ports", inner.err.Error())
	}
	return list
}

// portName returns the name of a port in lower case. In names of ClassAd attributes an
// underscore is written for the hyphen.
func portName(attribute string) string {
	return strings.ReplaceAll(strings.ToLower(attribute), "_", "-")
}
