package document

import "github.com/roost-batch/roost/internal/wire/scheddapi"

// Endpoint is where a task of a service is reached.
type Endpoint struct {
	Job      string            `json:"job"`
	Name     string            `json:"name"`
	Owner    string            `json:"owner"`
	Index    uint32            `json:"index"`
	Attempt  uint32            `json:"attempt"`
	Revision uint64            `json:"revision"`
	State    string            `json:"state"`
	Weight   uint32            `json:"weight"`
	Address  string            `json:"address"`
	Ports    map[string]uint32 `json:"ports"`
	Machine  string            `json:"machine"`
	DNSName  string            `json:"dns_name"`
}

// EndpointOf returns the document of an endpoint.
func EndpointOf(e *scheddapi.ServiceEndpoint) Endpoint {
	k := e.GetKey()
	d := Endpoint{Job: k.GetJob(), Name: k.GetName(), Owner: k.GetOwner(), Index: k.GetIndex(),
		Attempt: e.GetAttempt(), Revision: e.GetRevision(), State: e.GetState(), Weight: e.GetWeight(),
		Address: e.GetAddress(), Ports: map[string]uint32{}, Machine: e.GetMachine(), DNSName: e.GetDnsName()}
	for _, p := range e.GetPorts() {
		d.Ports[p.GetName()] = p.GetNumber()
	}
	return d
}
