package config

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
)

// PortRange is the numbers that a machine gives to ports of tasks without numbers of
// their own. The zero value is the default range.
type PortRange struct{ First, Last uint16 }

// String returns the range as in a node file.
func (r PortRange) String() string {
	return strconv.Itoa(int(r.First)) + "-" + strconv.Itoa(int(r.Last))
}

// OrDefault returns the range, or the default one for none.
func (r PortRange) OrDefault() PortRange {
	if r == (PortRange{}) {
		return PortRange{roost.FirstDynamicPort, roost.LastDynamicPort}
	}
	return r
}

// parsePortRange parses a range as "20000-32767". A task may have roost.MaxPorts ports,
// which must fit into it.
func parsePortRange(text string) (r PortRange, err error) {
	first, last, ok := strings.Cut(text, "-")
	from, fromErr := strconv.ParseUint(strings.TrimSpace(first), 10, 16)
	to, toErr := strconv.ParseUint(strings.TrimSpace(last), 10, 16)
	switch {
	case !ok || fromErr != nil || toErr != nil:
		return r, fmt.Errorf("%q is no range of ports", text)
	case from < roost.UnprivilegedPort:
		return r, fmt.Errorf("%s begins below %d, where a user needs a capability for each port", text,
			roost.UnprivilegedPort)
	case to < from || to-from+1 < roost.MaxPorts:
		return r, fmt.Errorf("%s has fewer than %d numbers, which one task may ask for", text, roost.MaxPorts)
	}
	return PortRange{uint16(from), uint16(to)}, nil
}

func (s *blockReader) readPortRange(to *PortRange) {
	s.readSetting("ports", `"20000-32767"`, func(text string) (err error) {
		*to, err = parsePortRange(text)
		return err
	})
}

func (w fileWriter) writePortRange(r PortRange) {
	if r != (PortRange{}) {
		w.writeText("ports", r.String())
	}
}
