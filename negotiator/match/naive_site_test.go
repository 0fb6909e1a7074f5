package match

import "github.com/roost-batch/roost"

// spreadAttrs returns the attributes over which the units of a request are spread.
func (n *naiveMatcher) spreadAttrs(r *Request) []string {
	if r.Class.Spread != "" {
		return []string{r.Class.Spread}
	}
	if r.Band.IsProd() {
		return n.FailureDomains
	}
	return nil
}

// mixScore returns what a machine's score gains where bands are mixed.
func (n *naiveMatcher) mixScore(r *Request, m *Machine) float64 {
	if !n.MixBands {
		return 0
	}
	prod := m.prodCPU
	for _, one := range n.Pending[m.Name] {
		if !one.MayReclaim {
			prod += one.Resources.CPU
		}
	}
	for _, g := range n.grants {
		if g.Machine == m && g.Request.Band.IsProd() {
			prod += g.Request.Class.Resources.CPU * roost.MilliCPU(g.Units)
		}
	}
	part := prod.Cores() / m.Total.CPU.Cores()
	if r.Band.IsProd() {
		return part
	}
	return -part
}
