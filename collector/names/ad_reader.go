package names

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// endpointText is an endpoint and its text in the ad.
type endpointText struct {
	text     string
	endpoint *Endpoint
}

// adReader compares the endpoints in an ad of a machine with those in the ad before.
type adReader struct {
	ad      MachineAd
	reparse bool // addresses have changed: equal text does not mean an equal endpoint
	old     []endpointText
	used    []bool // which of old are in next
	next    []endpointText
	added   []*Endpoint
	byText  map[string]int // positions in old, made when the order differs

	now      time.Time
	signers  map[string][]byte // certificates by their keys, read when one is needed
	failures int               // rights that were not valid
}

// read reads the endpoint at a position of the ad.
func (r *adReader) read(position int, text string) error {
	if i := r.oldPosition(position, text); i >= 0 && !r.used[i] {
		r.used[i] = true
		r.next = append(r.next, r.old[i])
		return nil
	}
	e, err := parseEndpoint(text)
	if err != nil {
		return err
	}
	e.Node = r.ad.Node
	if !e.Address.IsValid() && len(r.ad.Addresses) > 0 {
		e.Address = r.ad.Addresses[0]
	}
	if err := checkAddress(e.Address, r.ad); err != nil {
		return err
	}
	if err := r.checkRight(e); err != nil {
		return err
	}
	if slices.ContainsFunc(r.next, func(o endpointText) bool {
		return o.endpoint.Index == e.Index && o.endpoint.TaskKey == e.TaskKey
	}) {
		return fmt.Errorf("task %d of job %s: %w: it has two endpoints", e.Index, e.Job, roost.Invalid)
	}
	// a part of the ad's text would hold all of it in memory
	r.next = append(r.next, endpointText{strings.Clone(text), e})
	r.added = append(r.added, e)
	return nil
}

// oldPosition returns where the same text is in the ad before, or -1.
func (r *adReader) oldPosition(position int, text string) int {
	switch {
	case r.reparse || len(r.old) == 0:
		return -1
	case position < len(r.old) && r.old[position].text == text:
		return position
	case r.byText == nil:
		r.byText = make(map[string]int, len(r.old))
		for i, e := range r.old {
			r.byText[e.text] = i
		}
	}
	if i, ok := r.byText[text]; ok {
		return i
	}
	return -1
}
