package jobad

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// adReader reads attributes and keeps the first mistake.
type adReader struct {
	ad  *classad.Ad
	err error
}

func (r *adReader) fail(name, why string) {
	if r.err == nil {
		r.err = fmt.Errorf("attribute %s: %w: %s", name, roost.Invalid, why)
	}
}

func (r *adReader) has(name string) bool { _, ok := r.ad.Lookup(name); return ok }

func (r *adReader) text(name, otherwise string) string {
	if !r.has(name) {
		return otherwise
	}
	s, ok := r.ad.Str(name)
	if !ok {
		r.fail(name, "a string is wanted")
	}
	return s
}

func (r *adReader) boolean(name string, otherwise bool) bool {
	if !r.has(name) {
		return otherwise
	}
	b, ok := r.ad.Bool(name)
	if !ok {
		r.fail(name, "true or false is wanted")
	}
	return b
}

func (r *adReader) number(name string, otherwise, low, high int64) int64 {
	if !r.has(name) {
		return otherwise
	}
	n, ok := r.ad.Int(name)
	if !ok || n < low || n > high {
		r.fail(name, fmt.Sprintf("a whole number from %d to %d is wanted", low, high))
		return otherwise
	}
	return n
}

func (r *adReader) real(name string, otherwise, high float64) float64 {
	if !r.has(name) {
		return otherwise
	}
	n, ok := r.ad.Real(name)
	if !ok || !(n > 0 && n <= high) {
		r.fail(name, fmt.Sprintf("a number above 0 and up to %g is wanted", high))
		return otherwise
	}
	return n
}

func (r *adReader) expression(name string) string {
	e, ok := r.ad.Lookup(name)
	if !ok {
		return ""
	}
	return e.String()
}

// maxListItems bounds the lists of an ad that are kept in memory.
const maxListItems = 64

func (r *adReader) list(name string) []string {
	if !r.has(name) {
		return nil
	}
	list, ok := r.ad.Strings(name)
	if !ok || len(list) > maxListItems {
		r.fail(name, fmt.Sprintf("a list of at most %d strings is wanted", maxListItems))
	}
	return list
}
