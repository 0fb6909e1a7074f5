package enroll

import (
	"context"
	"errors"
	"slices"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/ca"
	"github.com/roost-batch/roost/internal/identity/caclient"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/desktop/guard"
)

// JoinOptions is a machine that becomes a node of a pool that is there.
type JoinOptions struct {
	NodePaths
	Authority string       // HOST[:PORT]
	Token     ca.JoinToken //
	Part      ca.NodePart  // what the token is for unless set
	Name      string       // of the node; what the token is for, or else this machine's, unless set
	// HOST[:PORT] where its daemons listen; the address that leads to the authority
	// unless set
	Address string
}

// JoinResult is what came of it.
type JoinResult struct {
	Node *config.Node
	Part ca.NodePart
	// the address from which the authority sees this machine, where that is not its own:
	// a router stands between
	SeenAddress string
}

// Join gets a certificate for this machine and writes its node file. Nothing is started.
// Whatever fails, it can be tried again with the same token.
func Join(ctx context.Context, j JoinOptions) (*JoinResult, error) {
	if err := j.checkUnused(); err != nil {
		return nil, err
	}
	host, port, err := SplitHostPort(j.Authority)
	if err != nil {
		return nil, err
	}
	door, err := caclient.Connect(ctx, joinHostPort(host, port), j.Token)
	if err != nil {
		return nil, err
	}
	defer door.Close()
	if _, err := door.CheckPool(ctx); err != nil {
		return nil, err
	}
	own, base := door.LocalAddr, port
	if j.Address != "" {
		if own, base, err = SplitHostPort(j.Address); err != nil {
			return nil, err
		}
	}
	if err := checkPortFree(own, j.ports(base)...); err != nil {
		return nil, err
	}
	if err := j.makeDirs(); err != nil {
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
	if err := errors.Join(pki.SaveAuthority(files, door.Authority),
		pki.SaveCertificate(files, reply.GetCertificate())); err != nil {
		return nil, err
	}
	done := &JoinResult{Part: ca.NodePart(reply.GetPart())}
	if seen := reply.GetSeen(); j.Address == "" && seen != own {
		done.SeenAddress = seen
	}
	n := j.node(reply, own, base)
	if done.Part == ca.Desktop {
		if err := guard.WriteInitialPause(j.Dir()); err != nil {
			return nil, err
		}
	}
	done.Node, err = j.writeNodeFile(n, "Written by roost join.")
	return done, err
}

// ports are those that the machine's daemons will listen on. What it will be is not known
// for certain where only the token says so; most run jobs.
func (j JoinOptions) ports(base int) []int {
	switch j.Part {
	case ca.Submit:
		return []int{base + scheddPort}
	case ca.Central:
		return []int{base + collectorPort, base + negotiatorPort, base + scheddPort}
	}
	return []int{base + startdPort, base + scheddPort}
}

// node is what the authority's answer makes of the machine.
func (j JoinOptions) node(reply *wire.JoinReply, host string, port int) *config.Node {
	n := j.newNode(reply.GetName(), reply.GetPool())
	n.Collectors, n.Negotiators = reply.GetCollectors(), reply.GetNegotiators()
	n.AuthorityAt, n.ImageServer = reply.GetAuthority(), reply.GetCheckpointServer()
	// so that the other submit nodes can ask for its jobs
	n.Schedd.Listen = []string{joinHostPort(host, port+scheddPort)}
	switch ca.NodePart(reply.GetPart()) {
	case ca.Server:
		n.Startds = []config.StartdSettings{{Name: n.Name, Listen: []string{joinHostPort(host, port+startdPort)}}}
	case ca.Desktop:
		n.Startds = []config.StartdSettings{newDesktop(n.Name, joinHostPort(host, port+startdPort))}
	case ca.Central:
		n.Collector = &config.CollectorSettings{Listen: []string{joinHostPort(host, port+collectorPort)}}
		n.Negotiator = &config.NegotiatorSettings{Listen: []string{joinHostPort(host, port+negotiatorPort)}}
		n.Collectors = withPort(n.Collectors, n.Collector.Listen[0])
		n.Negotiators = withPort(n.Negotiators, n.Negotiator.Listen[0])
	}
	return n
}

func withPort(list []string, one string) []string {
	if slices.Contains(list, one) {
		return list
	}
	return append(slices.Clone(list), one)
}
