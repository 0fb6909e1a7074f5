package adstore

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
)

// nodeIdentity identifies a node by its certificate.
type nodeIdentity struct{ node, serial string }

// NodeWithSameName returns the certificate of a known node whose name equals node without
// regard to case.
func (s *Store) NodeWithSameName(node string) (serial string, ok bool) {
	k, known := s.nodesByName[strings.ToLower(node)]
	return k.serial, known && k.node != node
}

// ReleaseName frees a name whose node is no longer a member of the pool.
func (s *Store) ReleaseName(node string) { delete(s.nodesByName, strings.ToLower(node)) }

// checkNameOwner checks the owner of a name before any other part of an update is used.
// It returns the ad of that name with which the update must be compared.
//
// Naively, any node that may use a name could replace an older ad. But the node itself
// states how new its ad is, and "slot1.n1" may be a startd of n1, or a node. So the name
// of a node belongs to that node, as soon as its certificate was first seen. Any other
// name belongs to the first node that used it, as long as that ad lives. A node whose
// name another one has used gets it back at once, and the other's ad is removed. Names
// that differ only by case are the same.
func (s *Store) checkNameOwner(old *nameSlot, u AdUpdate) (*nameSlot, error) {
	if u.Node != "" {
		key := strings.ToLower(u.Node)
		if k := s.nodesByName[key].node; k == u.Node || k == "" && len(s.nodesByName) < s.limits.AdsPerType {
			s.nodesByName[key] = nodeIdentity{u.Node, u.Serial}
		}
	}
	owner := s.nodesByName[strings.ToLower(u.Name)].node
	switch {
	case u.Node == "": // a daemon on this host with the collector's own user
	case owner != "" && owner != u.Node:
		return old, fmt.Errorf("ad of %s %q: %w: that is the name of the node %s, and names are compared without "+
			"regard to case", u.Type, u.Name, roost.PermissionDenied, owner)
	case old != nil && old.node != u.Node && owner == u.Node:
		s.removeAd(old)
		return nil, nil
	case old != nil && old.node != u.Node:
		return old, fmt.Errorf("ad of %s %q: %w: the name is taken by %s", u.Type, u.Name, roost.PermissionDenied,
			ownerText(old.node))
	}
	if old != nil && old.Name != u.Name {
		return old, fmt.Errorf("ad of %s %q: %w: there is one of %q, and names are compared without regard to case",
			u.Type, u.Name, roost.Conflict, old.Name)
	}
	return old, nil
}

// ownerText describes a node in messages.
func ownerText(node string) string {
	if node == "" {
		return "a daemon of the collector's host"
	}
	return "the node " + node
}
