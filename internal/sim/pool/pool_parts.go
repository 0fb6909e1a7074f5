package pool

// FaultInjector breaks what a simulated pool consists of: processes, hosts, links, disks
// and clocks.
type FaultInjector struct{ *Pool }

// networkStreams are the streams between the daemons of a simulated pool.
type networkStreams struct{ *Pool }

// Faults is what breaks the pool.
func (p *Pool) Faults() FaultInjector { return FaultInjector{p} }

func (p *Pool) network() networkStreams { return networkStreams{p} }
