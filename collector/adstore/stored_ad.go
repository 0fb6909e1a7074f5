package adstore

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// StoredAd is one ad as it was advertised. It never changes.
type StoredAd struct {
	Type, Name string
	Node       string     // node of the certificate with which it came; "": without a certificate
	From       netip.Addr // address of the sender; invalid: a daemon on this host
	Text       string
	Ad         *classad.Ad
	Private    map[string]string // not part of Ad, and only for peers that may see it
	Sequence   uint64
	Started    int64
}

// maxName bounds the names of ads and of types, in bytes.
const maxName = 256

func checkNames(u AdUpdate) error {
	for _, n := range [...]struct{ what, text string }{{"type", u.Type}, {"name", u.Name}} {
		switch {
		case n.text == "":
			return fmt.Errorf("ad: %w: its %s is empty", roost.Invalid, n.what)
		case len(n.text) > maxName:
			return fmt.Errorf("ad: %w: its %s has %d bytes, and %d is the most", roost.Invalid, n.what,
				len(n.text), maxName)
		case !utf8.ValidString(n.text) || strings.ContainsFunc(n.text, unicode.IsControl):
			return fmt.Errorf("ad: %w: its %s %q is not plain text", roost.Invalid, n.what, n.text)
		}
	}
	return nil
}

func newEntry(u AdUpdate, limits SizeLimits) (*StoredAd, error) {
	ad, err := u.readAd(limits)
	if err != nil {
		return nil, fmt.Errorf("ad of %s %q: %w", u.Type, u.Name, err)
	}
	return &StoredAd{
		Type: u.Type, Name: u.Name, Node: u.Node, From: u.From, Text: u.Ad, Ad: ad,
		Private: maps.Clone(u.Private), Sequence: u.Sequence, Started: u.Started,
	}, nil
}

// readAd parses the ad of the update and checks it.
func (u *AdUpdate) readAd(limits SizeLimits) (ad *classad.Ad, err error) {
	private := 0
	for name, text := range u.Private {
		private += len(name) + len(text)
	}
	if n := max(len(u.Ad), private); n > limits.AdBytes {
		return nil, fmt.Errorf("%w: %d bytes, and %d is the most", roost.Invalid, n, limits.AdBytes)
	}
	if ad = u.ParsedAd; ad == nil {
		if ad, err = classad.Parse(u.Ad); err != nil {
			return nil, fmt.Errorf("%w: %w", roost.Invalid, err)
		}
	}
	if ad.Len() > limits.Attributes {
		return nil, fmt.Errorf("%w: %d attributes, and %d is the most", roost.Invalid, ad.Len(), limits.Attributes)
	}
	for name := range u.Private {
		if _, public := ad.Lookup(name); public {
			return nil, fmt.Errorf("%w: %s is public and private", roost.Invalid, name)
		}
	}
	if got, ok := ad.Str(roost.AttrMyType); ok && !strings.EqualFold(got, u.Type) {
		return nil, fmt.Errorf("%w: %s in it is %q", roost.Invalid, roost.AttrMyType, got)
	}
	_, there := ad.Lookup(roost.AttrName)
	if got, ok := constantString(ad, roost.AttrName); (there || u.Node != "") &&
		(!ok || !strings.EqualFold(got, u.Name)) {
		return nil, fmt.Errorf("%w: %s in it is %v, and has to be that text", roost.Invalid, roost.AttrName,
			ad.Eval(roost.AttrName, nil))
	}
	if err := checkHost(ad, u); err != nil {
		return nil, err
	}
	return ad, checkAmounts(ad)
}

// checkHost checks that the ad of a node names no other host. Users find a machine by its
// attribute Machine, and schedds connect to it.
func checkHost(ad *classad.Ad, u *AdUpdate) error {
	if u.Node == "" {
		return nil
	}
	if _, there := ad.Lookup(roost.AttrMachine); !there && !strings.EqualFold(u.Type, "Machine") {
		return nil
	}
	if got, ok := constantString(ad, roost.AttrMachine); !ok || got != u.Node {
		return fmt.Errorf("%s: %w: it is %v in it, and node %s may speak for itself only, in plain text",
			roost.AttrMachine, roost.PermissionDenied, ad.Eval(roost.AttrMachine, nil), u.Node)
	}
	return nil
}

// constantString returns the value of an attribute that is a literal string. An
// expression could have another value when a job is matched.
func constantString(ad *classad.Ad, name string) (string, bool) {
	e, _ := ad.Lookup(name)
	v, ok := e.Literal()
	if !ok {
		return "", false
	}
	return v.Str()
}

// amounts are the attributes on which plans are based, with the highest plausible value
// of each. A higher value is an error that would make all sums over the pool meaningless.
var amounts = [...]struct {
	name string
	most float64
}{
	{roost.AttrCpus, 1 << 20}, {roost.AttrTotalCpus, 1 << 20},
	{roost.AttrMemory, 1 << 40}, {roost.AttrTotalMemory, 1 << 40}, // MiB
	{roost.AttrDisk, 1 << 52}, {roost.AttrTotalDisk, 1 << 52}, // KiB
	{roost.AttrGpus, 1 << 16}, {roost.AttrTotalGpus, 1 << 16},
}

func checkAmounts(ad *classad.Ad) error {
	for _, a := range amounts {
		if _, there := ad.Lookup(a.name); !there {
			continue
		}
		v := ad.Eval(a.name, nil)
		n, ok := v.Number()
		if !ok || math.IsNaN(n) || n < 0 || n > a.most {
			return fmt.Errorf("%s: %w: %v is not an amount between 0 and %.0f", a.name, roost.Invalid, v, a.most)
		}
	}
	return nil
}
