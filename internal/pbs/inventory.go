package pbs

import (
	"slices"
	"strings"
)

// What a job names of the pool is looked up when it is submitted, where the pool can be asked: a machine may be named by what stands before the first point of
// its name, and a word that no machine has and no administrator has made is refused, as OpenPBS does, and not waited for.

// Inventory is what qsub can ask the pool. An error means that nobody knows: then what the job names is taken as it is.
type Inventory struct {
	Machines func() ([]string, error)            // the names of all machines
	Declares func(resource string) (bool, error) // whether a machine has it as an attribute, or an administrator has made it
}

// machine is the whole name of a machine; ok is false where there is none of that name, or nobody knows.
func (v *Inventory) machine(name string) (whole string, ok bool, err error) {
	if v == nil {
		return name, false, nil
	}
	all, err := v.Machines()
	if err != nil {
		return name, false, nil
	}
	found := MachinesNamed(name, all)
	switch len(found) {
	case 0:
		return name, false, nil
	case 1:
		return found[0], true, nil
	}
	return name, false, illegalResource("host", name+" may be "+strings.Join(found, " or "))
}

// MachinesNamed are the machines that a name may mean: the one of that name, or else all whose names begin with it up to their first point.
func MachinesNamed(name string, all []string) (found []string) {
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

// lookUp gives chunks the whole names of the machines that they name, and says which of the words of -l nodes are names.
func (s *submission) lookUp(chunks []chunk) error {
	for i := range chunks {
		c := &chunks[i]
		for j, host := range c.hosts {
			whole, _, err := s.caller.Pool.machine(host)
			if err != nil {
				return err
			}
			c.hosts[j] = whole
		}
		for _, p := range c.properties {
			whole, ok, err := s.caller.Pool.machine(p.name)
			if err != nil {
				return err
			}
			if ok || !identifier.MatchString(p.name) { // no attribute can be called so
				c.hosts, c.words[p.at] = append(c.hosts, whole), "host="+p.name
				continue
			}
			c.require, c.custom = append(c.require, isMachine(p.name)+" || TARGET."+p.name+" =?= true"), append(c.custom, p.name)
		}
		c.properties = nil
	}
	return nil
}

// checkWords refuses chunks that want words which nobody knows.
func (s *submission) checkWords(chunks []chunk) error {
	if s.caller.Pool == nil || s.caller.Pool.Declares == nil {
		return nil
	}
	seen := map[string]bool{}
	for i := range chunks {
		for _, name := range chunks[i].custom {
			if seen[name] {
				continue
			}
			seen[name] = true
			if known, err := s.caller.Pool.Declares(name); err == nil && !known {
				return refuse("Unknown resource: "+name+": no machine has it, and no administrator has made it", exitUnknown)
			}
		}
	}
	return nil
}

// property is a word of -l nodes that is the name of a machine or of an attribute of machines.
type property struct {
	name string
	at   int // among the chunk's words
}

// namesOnly knows the names of machines, and any word.
func (v *Inventory) namesOnly() *Inventory {
	if v == nil {
		return nil
	}
	return &Inventory{Machines: v.Machines}
}
