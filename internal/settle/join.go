package settle

import (
	"context"
	"errors"
	"slices"

	"github.com/roost-batch/roost/internal/authority"
	"github.com/roost-batch/roost/internal/authority/member"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/pki"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/guard"
)

// Joining is a machine that becomes a node of a pool that is there.
type Joining struct {
	Place
	Authority string          // HOST[:PORT]
	Token     authority.Token //
	Part      authority.Part  // what the token is for unless set
	Name      string          // of the node; what the token is for, or else this machine's, unless set
	Address   string          // HOST[:PORT] where its daemons listen; the address that leads to the authority unless set
}

// Joined is what came of it.
type Joined struct {
	Node   *config.Node
	Part   authority.Part
	Behind string // the address from which the authority sees this machine, where that is not its own: a router stands between
}

// Join gets a certificate for this machine and writes its node file. Nothing is started. Whatever fails, it can be tried again with the same token.
func Join(ctx context.Context, j Joining) (*Joined, error) {
	if err := j.free(); err != nil {
		return nil, err
	}
	host, port, err := Split(j.Authority)
	if err != nil {
		return nil, err
	}
	door, err := member.Knock(ctx, join(host, port), j.Token)
	if err != nil {
		return nil, err
	}
	defer door.Close()
	if _, err := door.Greet(ctx); err != nil {
		return nil, err
	}
	own, base := door.Local, port
	if j.Address != "" {
		if own, base, err = Split(j.Address); err != nil {
			return nil, err
		}
	}
	if err := vacant(own, j.ports(base)...); err != nil {
		return nil, err
	}
	if err := j.prepare(); err != nil {
		return nil, err
	}
	files := j.TLS()
	request, err := pki.Request(files.Key)
	if err != nil {
		return nil, err
	}
	reply, err := door.Join(ctx, j.Token, j.Part, j.Name, config.HostName(), request)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(pki.KeepAuthority(files, door.Authority), pki.KeepCertificate(files, reply.GetCertificate())); err != nil {
		return nil, err
	}
	done := &Joined{Part: authority.Part(reply.GetPart())}
	if seen := reply.GetSeen(); j.Address == "" && seen != own {
		done.Behind = seen
	}
	n := j.node(reply, own, base)
	if done.Part == authority.Desktop {
		if err := guard.PauseFirst(j.Dir()); err != nil {
			return nil, err
		}
	}
	done.Node, err = j.write(n, "Written by roost join.")
	return done, err
}

// ports are those that the machine's daemons will listen on. What it will be is not known for certain where only the token says so; most run jobs.
func (j Joining) ports(base int) []int {
	switch j.Part {
	case authority.Submit:
		return []int{base + scheddPort}
	case authority.Central:
		return []int{base + collectorPort, base + negotiatorPort, base + scheddPort}
	}
	return []int{base + startdPort, base + scheddPort}
}

// node is what the authority's answer makes of the machine.
func (j Joining) node(reply *wire.JoinReply, host string, port int) *config.Node {
	n := j.blank(reply.GetName(), reply.GetPool())
	n.Collectors, n.Negotiators = reply.GetCollectors(), reply.GetNegotiators()
	n.AuthorityAt, n.ImageServer = reply.GetAuthority(), reply.GetCheckpointServer()
	n.Schedd.Listen = []string{join(host, port+scheddPort)} // so that the other submit nodes can ask for its jobs
	switch authority.Part(reply.GetPart()) {
	case authority.Server:
		n.Startds = []config.Startd{{Name: n.Name, Listen: []string{join(host, port+startdPort)}}}
	case authority.Desktop:
		n.Startds = []config.Startd{desktop(n.Name, join(host, port+startdPort))}
	case authority.Central:
		n.Collector = &config.Collector{Listen: []string{join(host, port+collectorPort)}}
		n.Negotiator = &config.Negotiator{Listen: []string{join(host, port+negotiatorPort)}}
		n.Collectors = with(n.Collectors, n.Collector.Listen[0])
		n.Negotiators = with(n.Negotiators, n.Negotiator.Listen[0])
	}
	return n
}

func with(list []string, one string) []string {
	if slices.Contains(list, one) {
		return list
	}
	return append(slices.Clone(list), one)
}
