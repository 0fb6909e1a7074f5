package node

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/admin"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/identity/ca"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// maxOfferFile bounds the file of an offer.
const maxOfferFile = 64 << 10

// PeerCommand returns roost peer: lend machines to other pools, and borrow theirs.
func PeerCommand() *frame.Command {
	return &frame.Command{
		Name: "peer", Group: frame.GroupPool, Summary: "lend machines to other pools, and borrow theirs",
		Synopsis:    "[offer NAME | accept FILE | list | show NAME | revoke NAME]",
		MaxOperands: -1, Branches: peerBranches,
		Run: func(c *frame.Invocation) error { return c.RunSubcommand(peerBranches()) },
		Description: "A pool lends machines to another one, its guest, when its own users leave them idle. offer " +
			"prints an offer for one pool. The administrator of that pool accepts it there. The submit nodes of the " +
			"guest that name the host in flock then run tasks there that found no room at home. list and show tell " +
			"which pools are guests, and which are hosts. revoke ends an agreement on either side: nothing more " +
			"starts, and what runs there ends. Run it where the authority of the pool is, as root.",
		Examples: []frame.Example{
			{Line: "sudo roost peer offer chemistry --share 64 >offer",
				Description: "let the pool chemistry have up to 64 cores of this one"},
			{Line: "sudo roost peer accept offer --as physics", Description: "accept it, at the other pool"},
			{Line: "sudo roost peer revoke chemistry", Description: "end it"},
		},
		Flags: append([]ucli.Flag{frame.JSONFlag(),
			&ucli.StringFlag{Name: "share", Usage: "offer: the guest has at most `CORES` at a time; else no bound " +
				"but " +
				"what others leave"},
			&ucli.IntFlag{Name: "days", Usage: "offer: it ends `N` days after it was accepted; else when it is " +
				"revoked"},
			&ucli.StringFlag{Name: "expires", Usage: "offer: how `LONG` it can be accepted", Value: "1d"},
			&ucli.StringFlag{Name: "as", Usage: "accept: the `NAME` of the other pool here; else its own"},
			&ucli.StringFlag{Name: "reason", Usage: "revoke: a `TEXT` for the other side"},
		}, authorityFlags()...),
	}
}

func peerBranches() []frame.Subcommand {
	const name = "the name of a pool"
	return []frame.Subcommand{
		{Name: "offer", Summary: "print an offer for another pool", MinOperands: 1, MaxOperands: 1, OperandNames: name,
			Flags: []string{"share", "days", "expires", "config"}, Run: offerPeer},
		{Name: "accept", Summary: "accept the offer of another pool", MinOperands: 1, MaxOperands: 1,
			OperandNames: "the file of an offer, or -", Flags: []string{"as", "json", "config"}, Run: acceptPeer},
		{Name: "list", Summary: "the guests and the hosts", Flags: []string{"json", "config"}, Run: listPeers},
		{Name: "show", Summary: "all about a peer", MinOperands: 1, MaxOperands: 1, OperandNames: name,
			Flags: []string{"json", "config"}, Run: showPeer},
		{Name: "revoke", Summary: "end an agreement, or withdraw an offer", MinOperands: 1, MaxOperands: 1,
			OperandNames: name, Flags: []string{"reason", "config"}, Run: revokePeer},
	}
}

// offerPeer prints an offer, and sets the share of the guest.
func offerPeer(c *frame.Invocation, args []string) error {
	life, err := roost.ParseDuration(c.StringFlag("expires"))
	if err != nil {
		return frame.UsageErrorf("--expires: %v", err)
	}
	days := c.CountFlag("days")
	if days < 0 {
		return frame.UsageErrorf("--days: %d is no number of days", days)
	}
	client, err := authority(c)
	if err != nil {
		return err
	}
	made, err := client.OfferPeer(c.Context, &wire.OfferPeerRequest{Name: args[0], Life: int64(life),
		DaysNs: int64(days) * int64(24*time.Hour)})
	if err != nil {
		return authorityUnanswered(err)
	}
	if err := shareOfPeer(c, args[0]); err != nil {
		return err
	}
	text, err := ca.EncodeOffer(made)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Stderr, "Send this to the administrator of %s, who runs roost peer accept before %s. It is good "+
		"once, and whoever has it can use it.\n\n", args[0],
		time.Unix(0, made.GetInfo().GetExpires()).Format("Mon 2 Jan 15:04"))
	_, err = c.Stdout.Write(text)
	return err
}

// shareOfPeer sets how many cores a guest may have, as the quota of its group.
func shareOfPeer(c *frame.Invocation, name string) error {
	if !c.IsFlagSet("share") {
		return nil
	}
	cores, err := admin.ParseCores(c.StringFlag("share"))
	if err != nil {
		return frame.UsageErrorf("--share: %v", err)
	}
	err = admin.PatchObject(c, ledger.KindGroup, admin.ObjectPatch{"name": ledger.PeerGroupPrefix + name,
		"cores": cores, "fraction": nil})
	if err != nil {
		return fmt.Errorf("the offer was made, but not the share: %w (roost group set %s%s --cores %s sets it)", err,
			ledger.PeerGroupPrefix, name, c.StringFlag("share"))
	}
	return nil
}

// readOffer reads the file of an offer.
func readOffer(c *frame.Invocation, file string) (*wire.PeerOffer, *x509.Certificate, error) {
	var in io.Reader = c.Stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, nil, fmt.Errorf("offer: %w: %w", roost.NoInput, err)
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxOfferFile))
	if err != nil {
		return nil, nil, fmt.Errorf("offer: %w: %w", roost.NoInput, err)
	}
	return ca.ReadOffer(text)
}

// acceptPeer accepts an offer at the host, and stores the host here.
func acceptPeer(c *frame.Invocation, args []string) error {
	offer, host, err := readOffer(c, args[0])
	if err != nil {
		return err
	}
	node, err := config.Load(c.StringFlag("config"))
	if err != nil {
		return err
	}
	own, err := authority(c)
	if err != nil {
		return err
	}
	if node.TLS == nil {
		return fmt.Errorf("%s: %w: the nodes of this pool have no certificates", node.File, roost.BadConfig)
	}
	root, err := pki.ReadCertificate(node.TLS.CA)
	if err != nil {
		return err
	}
	conn, err := rpc.Dial(offer.GetAddress(), pki.PinAuthority(host), peer.Authority)
	if err != nil {
		return err
	}
	c.CloseLater(conn)
	reply, err := wire.NewAuthorityClient(conn).AcceptOffer(c.Context,
		&wire.AcceptOfferRequest{Secret: offer.GetSecret(), Authority: root.Raw})
	if err = rpc.FromStatus(err); err != nil {
		if errors.Is(err, roost.Unavailable) {
			return fmt.Errorf("authority of %s at %s: %w: it does not answer: does a firewall let that port through? "+
				"Run the same command again then", offer.GetPool(), offer.GetAddress(), roost.Unavailable)
		}
		return err
	}
	name := cmp.Or(c.StringFlag("as"), strings.ToLower(offer.GetPool()))
	saved, err := own.SaveHost(c.Context, &wire.SaveHostRequest{Name: name, Pool: reply.GetPool(), As: reply.GetName(),
		Address: offer.GetAddress(), Authority: host.Raw, Until: reply.GetUntil()})
	if err != nil {
		return authorityUnanswered(err)
	}
	if c.WantsJSON() {
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{"peers": []peerDocument{newPeerDocument(saved, c.Now())}})
	}
	fmt.Fprintf(c.Stderr, "The pool %s lends machines to this one, which is called %s there. Submit nodes use "+
		"them with "+
		"flock = [%q] in the schedd block of their node files.\n", document.PrintableText(offer.GetPool()),
		document.PrintableText(reply.GetName()), name)
	return nil
}

// peerDocument is a peer in JSON.
type peerDocument struct {
	Name        string         `json:"name"`
	Side        string         `json:"side"` // "guest" or "host"
	Pool        string         `json:"pool,omitempty"`
	As          string         `json:"as,omitempty"`
	Address     string         `json:"address,omitempty"`
	Fingerprint string         `json:"fingerprint,omitempty"`
	State       string         `json:"state"` // "offered", "expired", "active", "ended" or "revoked"
	Made        int64          `json:"made"`  // unix seconds, as all times
	Expires     int64          `json:"expires,omitempty"`
	Accepted    int64          `json:"accepted,omitempty"`
	From        string         `json:"accepted_from,omitempty"`
	Until       int64          `json:"until,omitempty"`
	Revoked     int64          `json:"revoked,omitempty"`
	Reason      string         `json:"reason,omitempty"`
	Schedds     []guestSchedds `json:"schedds,omitempty"`
}

type guestSchedds struct {
	Name    string `json:"name"`
	Expires int64  `json:"expires"`
	From    string `json:"from"`
}

func newPeerDocument(p *wire.PeerInfo, now time.Time) peerDocument {
	seconds := func(at int64) int64 { return at / int64(time.Second) }
	d := peerDocument{Name: p.GetName(), Side: "guest", Pool: p.GetPool(), As: p.GetAs(), Address: p.GetAddress(),
		Fingerprint: p.GetFingerprint(), State: peerState(p, now), Made: seconds(p.GetMade()),
		Accepted: seconds(p.GetAccepted()), From: p.GetAcceptedFrom(), Until: seconds(p.GetUntil()),
		Revoked: seconds(p.GetRevoked()), Reason: p.GetReason()}
	if p.GetHost() {
		d.Side = "host"
	}
	if p.GetAccepted() == 0 {
		d.Expires = seconds(p.GetExpires())
	}
	for _, s := range p.GetSchedds() {
		d.Schedds = append(d.Schedds, guestSchedds{s.GetName(), seconds(s.GetExpires()), s.GetFrom()})
	}
	return d
}

// peerState is the state of an agreement.
func peerState(p *wire.PeerInfo, now time.Time) string {
	switch {
	case p.GetRevoked() != 0:
		return "revoked"
	case p.GetAccepted() == 0 && now.UnixNano() >= p.GetExpires():
		return "expired"
	case p.GetAccepted() == 0:
		return "offered"
	case p.GetUntil() != 0 && now.UnixNano() >= p.GetUntil():
		return "ended"
	}
	return "active"
}

// peersOf lists the peers, or those of a name.
func peersOf(c *frame.Invocation, name string) ([]peerDocument, error) {
	client, err := authority(c)
	if err != nil {
		return nil, err
	}
	all, err := client.ListPeers(c.Context, &wire.ListPeersRequest{})
	if err != nil {
		return nil, authorityUnanswered(err)
	}
	list := []peerDocument{}
	for _, p := range all.GetPeers() {
		if name == "" || strings.EqualFold(p.GetName(), name) {
			list = append(list, newPeerDocument(p, c.Now()))
		}
	}
	if name != "" && len(list) == 0 {
		return nil, fmt.Errorf("peer %q: %w: roost peer list shows those that there are", name, roost.NotFound)
	}
	return list, nil
}

func listPeers(c *frame.Invocation, _ []string) error {
	list, err := peersOf(c, "")
	if err != nil {
		return err
	}
	if c.WantsJSON() {
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{"peers": list})
	}
	if len(list) == 0 {
		fmt.Fprintln(c.Stderr, "there are no peers; to lend machines to another pool: roost peer offer NAME")
		return nil
	}
	t := &frame.TextTable{Columns: []frame.TableColumn{{Head: "PEER"}, {Head: "SIDE"}, {Head: "POOL"}, {Head: "STATE"},
		{Head: "SINCE", DropPriority: 2}, {Head: "UNTIL"}, {Head: "SCHEDDS", RightAligned: true, DropPriority: 1},
		{Head: "REASON", MinWidth: 10, DropPriority: 3}}}
	cell := func(text string) frame.TableCell { return frame.TableCell{Text: document.PrintableText(text)} }
	for _, p := range list {
		schedds := "-"
		if p.Side == "guest" {
			schedds = fmt.Sprint(len(p.Schedds))
		}
		t.AddRow(cell(p.Name), cell(p.Side), cell(cmp.Or(p.Pool, "-")), cell(p.State),
			cell(peerTime(c, cmp.Or(p.Accepted, p.Made))), cell(peerTime(c, cmp.Or(p.Until, p.Expires))), cell(schedds),
			cell(p.Reason))
	}
	t.Print(c.Stdout, c.OutScreen)
	return nil
}

func peerTime(c *frame.Invocation, at int64) string {
	if at == 0 {
		return "-"
	}
	return admin.UntilText(c, time.Unix(at, 0))
}

func showPeer(c *frame.Invocation, args []string) error {
	list, err := peersOf(c, args[0])
	if err != nil {
		return err
	}
	if c.WantsJSON() {
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{"peers": list})
	}
	say := func(head, text string) {
		if text != "" && text != "-" {
			fmt.Fprintf(c.Stdout, "%-12s %s\n", head, document.PrintableText(text))
		}
	}
	for i, p := range list {
		if i > 0 {
			fmt.Fprintln(c.Stdout)
		}
		say("Peer", p.Name+", a "+p.Side+", "+p.State)
		say("Pool", p.Pool)
		say("We are", p.As)
		say("Authority", p.Address)
		say("Fingerprint", p.Fingerprint)
		say("Offered", peerTime(c, p.Made))
		say("Expires", peerTime(c, p.Expires))
		say("Accepted", peerTime(c, p.Accepted))
		say("From", p.From)
		say("Until", peerTime(c, p.Until))
		say("Revoked", peerTime(c, p.Revoked))
		say("Reason", p.Reason)
		for _, s := range p.Schedds {
			say("Schedd", s.Name+" from "+s.From+", certificate until "+peerTime(c, s.Expires))
		}
	}
	return nil
}

func revokePeer(c *frame.Invocation, args []string) error {
	client, err := authority(c)
	if err != nil {
		return err
	}
	gone, err := client.RevokePeer(c.Context, &wire.RevokePeerRequest{Name: args[0], Reason: c.StringFlag("reason")})
	if err != nil {
		return authorityUnanswered(err)
	}
	what := "%s is no guest any more: no certificate is issued, and the nodes refuse those that there are when " +
		"they have " +
		"fetched the list, within 15 seconds.\n"
	if gone.GetHost() {
		what = "Submit nodes ask %s for no more machines within a minute; tasks that run there go on.\n"
	}
	fmt.Fprintf(c.Stderr, what, gone.GetName())
	return nil
}
