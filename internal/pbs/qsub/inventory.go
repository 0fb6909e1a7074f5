package qsub

import (
	"slices"
	"strings"
)

// What a job names of the pool is looked up when it is submitted, where the pool can be
// asked: a machine may be named by what stands before the first point of its name, and a
// word that no machine has and no administrator has made is refused, as OpenPBS does, and
// not waited for.

// PoolInventory is what qsub can ask the pool. An error means that nobody knows: then
// what the job names is taken as it is.
type PoolInventory struct {
	Machines func() ([]string, error) // the names of all machines
	// whether a machine has it as an attribute, or an administrator has made it
	IsDeclared func(resource string) (bool, error)
}

// fullMachineName is the whole name of a machine; ok is false where there is none of that
// name, or nobody knows.
func (v *PoolInventory) fullMachineName(name string) (whole string, ok bool, err error) {
	if v == nil {
		return name, false, nil
	}
	all, err := v.Machines()
	if err != nil {
		return name, false, nil
	}
	found := MatchingMachines(name, all)
	switch len(found) {
	case 0:
		return name, false, nil
	case 1:
		return found[0], true, nil
	}
	return name, false, illegalResourceError("host", name+" may be "+strings.Join(found, " or "))
}

// MatchingMachines are the machines that a name may mean: the one of that name, or else
// all whose names begin with it up to their first point.
func MatchingMachines(name string, all []string) (found []string) {
	for _, whole := range all {
		short, _, _ := strings.Cut(whole, ".")
		switch {
		case strings.EqualFold(whole, name):
			return []string{whole}
		case strings.EqualFold(short, name) && !slices.Contains(found, whole):
			found = append(found, whole)
		}
	}
	return found
}

// resolveMachines gives chunks the whole names of the machines that they name, and says
// which of the words of -l nodes are names.
func (s *JobSubmission) resolveMachines(chunks []resourceChunk) error {
	for i := range chunks {
		c := &chunks[i]
		for j, host := range c.hosts {
			whole, _, err := s.Caller.Inventory.fullMachineName(host)
			if err != nil {
				return err
			}
			c.hosts[j] = whole
		}
		for _, p := range c.properties {
			whole, ok, err := s.Caller.Inventory.fullMachineName(p.name)
			if err != nil {
				return err
			}
			if ok || !identifier.MatchString(p.name) { // no attribute can be called so
				c.hosts, c.selectWords[p.wordIndex] = append(c.hosts, whole), "host="+p.name
				continue
			}
			c.requirements, c.customWords = append(c.requirements,
				isMachineName(p.name)+" || TARGET."+p.name+" =?= true"), append(c.customWords, p.name)
		}
		c.properties = nil
	}
	return nil
}

// checkProperties refuses chunks that want words which nobody knows.
func (s *JobSubmission) checkProperties(chunks []resourceChunk) error {
	if s.Caller.Inventory == nil || s.Caller.Inventory.IsDeclared == nil {
		return nil
	}
	seen := map[string]bool{}
	for i := range chunks {
		for _, name := range chunks[i].customWords {
			if seen[name] {
				continue
			}
			seen[name] = true
			if known, err := s.Caller.Inventory.IsDeclared(name); err == nil && !known {
				return refusalf("Unknown resource: "+name+": no machine has it, and no administrator has made it",
					exitUnknown)
			}
		}
	}
	return nil
}

// nodeProperty is a word of -l nodes that is the name of a machine or of an attribute of
// machines.
type nodeProperty struct {
	name      string
	wordIndex int // among the chunk's words
}

// WithNamesOnly knows the names of machines, and any word.
func (v *PoolInventory) WithNamesOnly() *PoolInventory {
	if v == nil {
		return nil
	}
	return &PoolInventory{Machines: v.Machines}
}
