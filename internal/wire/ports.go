package wire

import (
	"fmt"

	"github.com/roost-batch/roost"
)

// FromPortRequests returns the messages of the ports that a claim is to have.
func FromPortRequests(all []roost.PortRequest) []*PortRequest {
	list := make([]*PortRequest, len(all))
	for i, p := range all {
		list[i] = &PortRequest{Name: p.Name, Static: uint32(p.Static), Listen: p.Listen, Host: p.Host}
	}
	return list
}

// PortRequestsOf is the way back. The error says what is wrong with them.
func PortRequestsOf(all []*PortRequest) ([]roost.PortRequest, error) {
	if len(all) == 0 {
		return nil, nil
	}
	if len(all) > roost.MaxPorts {
		return nil, fmt.Errorf("%w: a claim for %d ports, and %d is the most", roost.Invalid, len(all), roost.MaxPorts)
	}
	list := make([]roost.PortRequest, len(all))
	for i, p := range all {
		if p.GetStatic() > 1<<16-1 {
			return nil, fmt.Errorf("port %.40q: %w: there is no number %d", p.GetName(), roost.Invalid, p.GetStatic())
		}
		list[i] = roost.PortRequest{Name: p.GetName(), Static: uint16(p.GetStatic()), Listen: p.GetListen(),
			Host: p.GetHost()}
	}
	return list, roost.CheckPorts(list)
}
