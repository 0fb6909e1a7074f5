package qsub

import (
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/lazyregexp"
)

// Resources that PBS does not know are custom (OpenPBS Administrator's Guide, "Custom
// resources"). One with a number is counted for the whole pool, like licenses; the schedd
// knows which exist. All others are machine attributes that administrators have set:
// booleans or words.

// identifier matches an attribute name that needs no quotes.
var identifier = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// ParseCustomCount parses the requested number of a counted resource.
func ParseCustomCount(name, v string) (n int, ok bool) {
	if !roost.IsLimitName(strings.ToLower(name)) || strings.Trim(v, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(v)
	return n, err == nil && n <= roost.MaxLimitCount
}

// isMachineAttribute reports whether a custom resource can be a machine attribute.
func isMachineAttribute(name, v string) bool {
	return identifier().MatchString(name) && v != "" && (v[0] < '0' || v[0] > '9')
}

// machineAttributes lists the machine attributes that the job requests as a whole.
// Without a select they apply to all its chunks.
func (s *JobSubmission) machineAttributes() (names []string) {
	for _, name := range SortedNames(s.ResourceValues) {
		if _, counted := ParseCustomCount(name, s.ResourceValues[name]); !counted && JobWideResources[name] == nil &&
			ChunkResources[name] == nil {
			names = append(names, name)
		}
	}
	return names
}

// setCountedResources writes the counted resources of all chunks into the ad.
func (s *JobSubmission) setCountedResources(ad *classad.Ad) error {
	all := map[string]int{}
	for name, v := range s.ResourceValues {
		if n, ok := ParseCustomCount(name, v); ok && JobWideResources[name] == nil && ChunkResources[name] == nil {
			all[strings.ToLower(name)] += n
		}
	}
	chunks, _, _ := s.requestedChunks() // they were valid before
	for i := range chunks {
		for name, n := range chunks[i].counted {
			all[name] += n * chunks[i].count
		}
	}
	var list []string
	for _, name := range SortedNames(all) {
		switch n := all[name]; {
		case n > roost.MaxLimitCount:
			return illegalResourceError(name, "the chunks together are more than can be counted")
		case n > 0 && len(s.request.gangParts) > 1:
			return illegalResourceError(name, "a job on several machines takes nothing that is counted for the pool")
		case n > 0:
			list = append(list, roost.LimitRequest{Name: name, Count: n}.String())
		}
	}
	if len(list) > roost.MaxLimitRequests {
		return illegalResourceError(SortedNames(all)[roost.MaxLimitRequests], "these are more than a job may name")
	}
	if len(list) > 0 {
		ad.SetString(roost.AttrLimits, strings.Join(list, ", "))
	}
	return nil
}
