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

// JoinOptions describes a machine that joins an existing pool.
type JoinOptions struct {
	NodePaths
	Authority string       // HOST[:PORT]
	Token     ca.JoinToken //
	Part      ca.NodePart  // what the token is for unless set
	Name      string       // of the node; what the token is for, or else this machine's, unless set
	// HOST[:PORT] on which its daemons listen; by default the address of the route to the
	// authority
	Address string
}

// JoinResult is the result of a join.
type JoinResult struct {
	Node *config.Node
	Part ca.NodePart
	// the address from which the authority sees this machine, if that is not its own: a
	// router is between them
	SeenAddress string
}

// Join gets a certificate for this machine and writes its node file. It starts nothing.
// After any failure it can be repeated with the same token.
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

// ports returns the ports on which the machine's daemons will listen. If only the token
// has the part, it is unknown before the join and assumed to be one that runs jobs.
func (j JoinOptions) ports(base int) []int {
	switch j.Part {
	case ca.Submit:
		return []int{base + scheddPort}
	case ca.Central:
		return []int{base + collectorPort, base + negotiatorPort, base + scheddPort}
	}
	return []int{base + startdPort, base + scheddPort}
}

// node returns the configuration that follows from the authority's answer.
func (j JoinOptions) node(reply *wire.JoinReply, host string, port int) *config.Node {
	n := j.newNode(reply.GetName(), reply.GetPool())
	n.Collectors, n.Negotiators = reply.GetCollectors(), reply.GetNegotiators()
	n.AuthorityAt, n.ImageServer = reply.GetAuthority(), reply.GetCheckpointServer()
	n.AccountantAt = reply.GetAccountant()
	// so that the other schedds can ask for its jobs
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
