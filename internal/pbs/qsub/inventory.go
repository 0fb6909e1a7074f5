package qsub

import (
	"slices"
	"strings"
)

// Names of machines and attributes in a job are looked up at submission, if the pool can
// be asked. A machine may be named by the first label of its name. A word that is neither
// an attribute of a machine nor defined by an administrator is refused, as in OpenPBS,
// instead of waiting.

// PoolInventory is what qsub can ask the pool. After an error a name is accepted as it
// is.
type PoolInventory struct {
	Machines func() ([]string, error) // names of all machines
	// reports whether a machine has the attribute, or an administrator has defined it
	IsDeclared func(resource string) (bool, error)
}

// fullMachineName returns the full name of a machine. ok is false if there is none, or
// the pool cannot be asked.
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

// MatchingMachines returns the machines that a name may mean. It is the one of that name,
// or otherwise all with that first label.
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

// resolveMachines replaces the machine names in chunks by full names. It decides which
// words of -l nodes are names.
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
			if ok || !identifier().MatchString(p.name) { // not a valid attribute name
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

// checkProperties refuses chunks with unknown words.
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

// nodeProperty is a word of -l nodes that names a machine or a machine attribute.
type nodeProperty struct {
	name      string
	wordIndex int // index among the chunk's words
}

// WithNamesOnly returns an inventory that knows the machine names and accepts any word.
func (v *PoolInventory) WithNamesOnly() *PoolInventory {
	if v == nil {
		return nil
	}
	return &PoolInventory{Machines: v.Machines}
}
