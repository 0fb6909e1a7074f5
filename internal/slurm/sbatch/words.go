package sbatch

import (
	"slices"
	"strings"
)

// checkWords refuses wrong values of options that have no effect here. Slurm refuses
// them, too.
func (s *submission) checkWords() error {
	if text := s.value("hint"); text != "" && !slices.Contains([]string{"compute_bound", "memory_bound",
		"multithread", "nomultithread"}, text) {
		return fail("unrecognized --hint argument %q, see --hint=help", text)
	}
	if text := s.value("distribution"); text != "" && !isDistribution(text) {
		return invalid("distribution")
	}
	if text := s.value("deadline"); text != "" {
		if _, ok := ParseBegin(text, s.caller.Now); !ok {
			return invalid("deadline")
		}
	}
	return nil
}

// isDistribution reports whether a text is a value of --distribution. It says how tasks
// are laid on machines, sockets and cores, with colons between.
func isDistribution(text string) bool {
	ways, more, _ := strings.Cut(text, ",")
	if more != "" && !strings.EqualFold(more, "pack") && !strings.EqualFold(more, "nopack") {
		return false
	}
	parts := strings.Split(strings.ToLower(ways), ":")
	for i, part := range parts {
		if part == "*" || part == "block" || part == "cyclic" || i > 0 && part == "fcyclic" {
			continue
		}
		isPlane := part == "plane" || strings.HasPrefix(part, "plane=")
		if i > 0 || part != "arbitrary" && !isPlane {
			return false
		}
	}
	return len(parts) <= 3
}

// readExclusive reads --exclusive: whole machines, or sharing them with the jobs of one
// user only, which is the same here.
func (s *submission) readExclusive() (whole bool, err error) {
	text := s.value("exclusive")
	if text != "" && !slices.Contains([]string{"user", "mcs", "topo", "exclusive"}, text) {
		return false, invalid("exclusive")
	}
	return s.has("exclusive"), nil
}
