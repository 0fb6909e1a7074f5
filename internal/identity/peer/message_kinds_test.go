package peer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/wire"
)

// serviceRole returns the role that a service belongs to.
func serviceRole(service string) []peer.Role {
	return map[string][]peer.Role{
		"Schedd": {peer.Schedd}, "Neighbour": {peer.Schedd}, "Collector": {peer.Collector},
		"Negotiator": {peer.Negotiator}, "Replica": {peer.Negotiator}, "Startd": {peer.Startd},
	}[service]
}

// sentMessages lists every kind of message with its possible senders. Kinds are the
// requests of methods, and the members of messages on streams.
func sentMessages() map[string][]peer.Role {
	all := map[string][]peer.Role{}
	members := func(m protoreflect.MessageDescriptor, from []peer.Role) {
		for i := range m.Oneofs().Len() {
			if one := m.Oneofs().Get(i); !one.IsSynthetic() {
				for k := range one.Fields().Len() {
					all[fmt.Sprintf("%s.%s", m.Name(), one.Fields().Get(k).Name())] = from
				}
			}
		}
	}
	services := wire.File_roost_proto.Services()
	for i := range services.Len() {
		s := services.Get(i)
		for k := range s.Methods().Len() {
			m := s.Methods().Get(k)
			callers := peer.MethodAccess()[fmt.Sprintf("/%s/%s", s.FullName(), m.Name())]
			all[fmt.Sprintf("%s.%s", s.Name(), m.Name())] = callers
			members(m.Input(), callers)
			members(m.Output(), serviceRole(string(s.Name())))
		}
	}
	return all
}

// TestEveryMessageIsRegistered compares the register with the descriptors of the
// protocol, both ways, and with the access table.
func TestEveryMessageIsRegistered(t *testing.T) {
	want := sentMessages()
	for _, m := range peer.MessageKinds() {
		from, there := want[m.Name]
		if !there {
			t.Errorf("%s: there is no such message, or it is registered twice", m.Name)
			continue
		}
		delete(want, m.Name)
		if got, want := slices.Sorted(slices.Values(m.From)),
			slices.Sorted(slices.Values(from)); !slices.Equal(got, want) {
			t.Errorf("%s: the register has it from %v, and it comes from %v", m.Name, got, want)
		}
		if strings.TrimSpace(m.ComparedWith) == "" {
			t.Errorf("%s: it is not said what it is compared with", m.Name)
		}
	}
	for name, from := range want {
		t.Errorf("%s: a new kind of message, from %v: say in auth.Messages who may send it, and what its receiver "+
			"compares it with", name, from)
	}
}
