package names

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// RecordType is a type of DNS records.
type RecordType uint8

// The types.
const (
	OtherRecords RecordType = iota // none: the answer says whether the name exists
	IPv4Records                    // A
	IPv6Records                    // AAAA
	ServiceRecords
	TextRecords
)

// AnswerStatus is what is known about a name.
type AnswerStatus uint8

// The statuses.
const (
	NotInZone AnswerStatus = iota
	NoName                 // NXDOMAIN
	NameExists
	NameIsOrigin // the zone itself
)

// Answer is the answer to one query. The name exists without any records if nothing that
// was asked for is ready.
type Answer struct {
	Status    AnswerStatus
	Addresses []netip.Addr
	Services  []ServiceRecord
	Text      []string
}

// ServiceRecord is the value of an SRV record and the address of its target.
type ServiceRecord struct {
	Target  string // with a final dot
	Port    uint16
	Weight  uint16
	Address netip.Addr
}

// maxAddresses bounds the addresses in an answer.
const maxAddresses = 16

// Lookup answers a query for a name in lower case with a final dot. At most most service
// records are returned. Random returns a number below its argument: an answer has a
// random subset of the ready tasks, in random order.
func (z *Zone) Lookup(name string, t RecordType, most int, random func(n int) int) Answer {
	if name == z.Origin() {
		return Answer{Status: NameIsOrigin}
	}
	labels, ok := strings.CutSuffix(name, z.suffix)
	if !ok {
		return Answer{}
	}
	labels, owner := cutLast(labels)
	if labels == "" {
		if z.hasOwner(owner) {
			return Answer{Status: NameExists}
		}
		return Answer{Status: NoName}
	}
	labels, job := cutLast(labels)
	s := z.services[serviceKey{owner, job}]
	if s == nil {
		return Answer{Status: NoName}
	}
	return z.lookupInService(s, labels, t, most, random)
}

// cutLast cuts the last label off a name.
func cutLast(name string) (rest, last string) {
	i := strings.LastIndexByte(name, '.')
	return name[:max(i, 0)], name[i+1:]
}

// hasOwner reports whether an owner has services. There are far fewer services than
// tasks, and hardly anybody asks.
func (z *Zone) hasOwner(owner string) bool {
	for k := range z.services {
		if k.owner == owner {
			return true
		}
	}
	return false
}

// lookupInService answers for the labels before the name of a job.
func (z *Zone) lookupInService(s *service, labels string, t RecordType, most int, random func(n int) int) Answer {
	switch labels {
	case "_info":
		a := Answer{Status: NameExists}
		if t == TextRecords {
			a.Text = []string{s.infoText()}
		}
		return a
	case "_tcp":
		return Answer{Status: NameExists}
	}
	port := ""
	if strings.HasPrefix(labels, "_") {
		protocol := ""
		port, labels, _ = strings.Cut(labels[1:], ".")
		protocol, labels, _ = strings.Cut(labels, ".")
		if protocol != "_tcp" || port == "" {
			return Answer{Status: NoName}
		}
	}
	found, exists := s.selectTasks(labels)
	if !exists {
		return Answer{Status: NoName}
	}
	a := Answer{Status: NameExists}
	switch {
	case port != "" && t == ServiceRecords:
		a.Services = z.serviceRecords(found, port, most, random)
	case port == "" && t == IPv4Records:
		a.Addresses = pickAddresses(found.ofFamily(0), random)
	case port == "" && t == IPv6Records:
		a.Addresses = pickAddresses(found.ofFamily(1), random)
	}
	return a
}

// taskSet is tasks with an endpoint: either two lists by address family, or one.
type taskSet struct {
	byFamily *[2][]*task
	list     []*task
	only     *task // the set of one
}

// ofFamily returns the tasks of one address family.
func (f taskSet) ofFamily(family int) []*task {
	if f.byFamily != nil {
		return f.byFamily[family]
	}
	var list []*task
	if f.only != nil && addressFamily(f.only.shown) == family {
		return []*task{f.only}
	}
	for _, t := range f.list {
		if addressFamily(t.shown) == family {
			list = append(list, t)
		}
	}
	return list
}

// selectTasks returns the tasks that labels before the name of a job mean. exists is
// false if there is no such name.
func (s *service) selectTasks(labels string) (found taskSet, exists bool) {
	switch {
	case labels == "":
		return taskSet{byFamily: &s.ready}, true
	case labels == "any":
		return taskSet{}, true
	case labels == "canary":
		return s.canaryTasks(), true
	case labels[0] == 'r':
		n, ok := parseNumber(labels[1:])
		if !ok {
			return taskSet{}, false
		}
		return s.readyTasks(func(t *task) bool { return t.shown.Revision == n })
	}
	index, unready := strings.CutPrefix(labels, "any.")
	n, ok := parseNumber(index)
	if !ok || n > 1<<31 {
		return taskSet{}, false
	}
	var best *task
	for _, t := range s.byIndex[uint32(n)] {
		exists = true
		if t.shown == nil || t.shown.State == Lost || !unready && t.shown.State != Ready {
			continue
		}
		if best == nil || t.shown.State == Ready && best.shown.State != Ready ||
			(t.shown.State == Ready) == (best.shown.State == Ready) && t.changed > best.changed {
			best = t
		}
	}
	return taskSet{only: best}, exists
}

// parseNumber parses a number without a leading zero, so that each task has one name.
func parseNumber(s string) (uint64, bool) {
	n, err := strconv.ParseUint(s, 10, 62)
	return n, err == nil && (s[0] != '0' || s == "0")
}

// readyTasks returns the ready tasks for which a condition is true. exists reports
// whether it is true of any task.
func (s *service) readyTasks(condition func(*task) bool) (found taskSet, exists bool) {
	for _, t := range s.tasks {
		if t.shown != nil && condition(t) {
			exists = true
			if t.shown.State == Ready {
				found.list = append(found.list, t)
			}
		}
	}
	return found, exists
}

// canaryTasks returns the ready tasks of the newest revision while older ones are ready,
// too.
func (s *service) canaryTasks() taskSet {
	var newest uint64
	mixed := false
	for _, list := range s.ready {
		for _, t := range list {
			if r := t.shown.Revision; newest != 0 && r != newest {
				mixed = true
				newest = max(newest, r)
			} else {
				newest = r
			}
		}
	}
	if !mixed {
		return taskSet{}
	}
	found, _ := s.readyTasks(func(t *task) bool { return t.shown.Revision == newest })
	return found
}

// pickAddresses returns the addresses of random tasks, each once: several tasks may be on
// one machine.
func pickAddresses(list []*task, random func(n int) int) []netip.Addr {
	chosen := pickTasks(list, maxAddresses, random)
	addresses := make([]netip.Addr, 0, len(chosen))
	for _, t := range chosen {
		if !slices.Contains(addresses, t.shown.Address) { // a record set has no record twice
			addresses = append(addresses, t.shown.Address)
		}
	}
	return addresses
}

// pickTasks returns up to most random tasks of a list in random order. It uses Floyd's
// algorithm and a shuffle, so its cost depends on most alone.
func pickTasks(list []*task, most int, random func(n int) int) []*task {
	n := min(most, len(list))
	chosen := make([]*task, 0, n)
	if n == len(list) {
		chosen = append(chosen, list...)
	} else {
		taken := make(map[int]bool, n)
		for i := len(list) - n; i < len(list); i++ {
			j := random(i + 1)
			if taken[j] {
				j = i
			}
			taken[j] = true
			chosen = append(chosen, list[j])
		}
	}
	for i := len(chosen) - 1; i > 0; i-- {
		j := random(i + 1)
		chosen[i], chosen[j] = chosen[j], chosen[i]
	}
	return chosen
}

func (z *Zone) serviceRecords(found taskSet, port string, most int, random func(n int) int) []ServiceRecord {
	var records []ServiceRecord
	for family := range 2 {
		for _, t := range pickTasks(found.ofFamily(family), most-len(records), random) {
			if number, ok := t.shown.Port(port); ok {
				records = append(records, ServiceRecord{Target: z.TaskName(t.key), Port: number,
					Weight: t.shown.Weight, Address: t.shown.Address})
			}
		}
	}
	return records
}

// TaskName returns the name of a task, with a final dot.
func (z *Zone) TaskName(k TaskKey) string {
	return strconv.FormatUint(uint64(k.Index), 10) + "." + k.Name + "." + k.Owner + z.suffix
}

// infoText returns the text about a service.
func (s *service) infoText() string {
	count, revision := 0, uint64(0)
	for _, t := range s.tasks {
		if t.shown != nil {
			count++
			revision = max(revision, t.shown.Revision)
		}
	}
	return fmt.Sprintf("count=%d ready=%d revision=%d", count, len(s.ready[0])+len(s.ready[1]), revision)
}
