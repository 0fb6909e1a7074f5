package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// CustomResource describes a resource that jobs name and that is not built into Roost
// (PBS: custom resources; OpenPBS, pbs_resources(7B)). A resource that is counted for the
// whole pool has a [ConcurrencyLimit] of the same name, which defines its amount; any
// other is an attribute of machines, which their node files set.
type CustomResource struct {
	Name string `json:"name"`
	Type string `json:"type,omitempty"` // one of [ResourceTypes]; empty: string
	Flag string `json:"flag,omitempty"` // letters of [ResourceFlags]
}

// ResourceTypes lists the types that a resource may have.
func ResourceTypes() []string {
	return []string{"boolean", "float", "long", "size", "string", "string_array"}
}

// ResourceFlags contains the letters that flags may have. The letter h is for machine
// attributes, q for resources counted for the pool, n and f for those counted on
// machines, i and r for those that users may not request, m for those passed to machines.
const ResourceFlags = "fhimnqr"

func (r CustomResource) name() string     { return r.Name }
func (r CustomResource) users() []string  { return nil }
func (r CustomResource) groups() []string { return nil }

func (r CustomResource) check(*Ledger) error {
	if err := checkPlainName("a resource", r.Name); err != nil {
		return err
	}
	if r.Type != "" && !slices.Contains(ResourceTypes(), r.Type) {
		return fmt.Errorf("%q is none of the types %s", r.Type, strings.Join(ResourceTypes(), ", "))
	}
	for i, f := range r.Flag {
		if !strings.ContainsRune(ResourceFlags, f) || strings.ContainsRune(r.Flag[:i], f) {
			return fmt.Errorf("flag %q: it is made of letters of %q, each once", r.Flag, ResourceFlags)
		}
	}
	if strings.ContainsAny(r.Flag, "fn") {
		return errors.New("flags n and f are for resources that each machine counts, which Roost does not have: " +
			"leave them out, and the pool counts the resource")
	}
	if strings.Contains(r.Flag, "q") && !r.IsCounted() {
		return fmt.Errorf("flag q is for resources that are counted, and a %s is not", r.Type)
	}
	return nil
}

// IsCounted reports whether the pool has a number of units of the resource.
func (r CustomResource) IsCounted() bool {
	return r.Type == "long" && !strings.Contains(r.Flag, "h")
}

// Resources lists the resources by name.
func (l *Ledger) Resources() []CustomResource {
	return slices.Collect(objectValues[CustomResource](l, KindResource))
}
