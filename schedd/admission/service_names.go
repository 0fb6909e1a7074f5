package admission

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue"
)

// checkServiceNames refuses services that nobody could find. Their names and that of
// their user are labels of the names of their tasks. Clients refuse most of them already.
func checkServiceNames(user string, specs []queue.SubmitSpec) error {
	for i, spec := range specs {
		if _, ok := spec.Ad.Lookup(roost.AttrService); !ok {
			continue
		}
		name, _ := spec.Ad.Str(roost.AttrJobName)
		if name != "" && !roost.IsDNSLabel(name) {
			return JobOrdinal(labelRefusal("a service", name), i, specs)
		}
		if user != "" && !roost.IsDNSLabel(user) {
			return JobOrdinal(labelRefusal("a user with services", user), i, specs)
		}
	}
	return nil
}

func labelRefusal(what, name string) error {
	nearest := ""
	if label := roost.NearestDNSLabel(name); label != "" {
		nearest = fmt.Sprintf("; the nearest one is %q", label)
	}
	return fmt.Errorf("%w: %.80q cannot be the name of %s: tasks of services are found by names in the DNS, whose "+
		"parts have letters, digits and inner hyphens, and at most %d characters%s", roost.Invalid, name, what,
		roost.MaxDNSLabel, nearest)
}
