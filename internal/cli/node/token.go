package node

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/admin"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/nodeaccess"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// authorityFlags say where the authority is.
func authorityFlags() []ucli.Flag { return []ucli.Flag{nodeaccess.ConfigFlag()} }

// TokenCommand returns roost token: let another machine into the pool.
func TokenCommand() *frame.Command {
	return &frame.Command{
		Name: "token", Group: frame.GroupPool, Summary: "let another machine into the pool", Synopsis: "[list | rm ID]",
		MaxOperands: -1,
		Description: "Prints the line that makes one machine a member of the pool. It is good once, and for an hour " +
			"unless said. Run it where the pool's authority is, as root. " +
			"list shows the tokens that were made and the machines that have joined; rm takes a token back.",
		Examples: []frame.Example{
			{Line: "sudo roost token --desktop", Description: "print the line for somebody's desktop"},
			{Line: "sudo roost token --server --for n7 --expires 1d",
				Description: "for n7 alone, until tomorrow; if there is an n7 it is replaced"},
			{Line: "roost token --pilots 20 --expires 24h >pilot.token",
				Description: "for 20 pilots of yours, until tomorrow"},
			{Line: "sudo roost token rm 3f9c", Description: "take a token back"},
		},
		Flags: append(append(roleFlags(),
			&ucli.BoolFlag{Name: "user", Usage: "instead, print the line with which you act on your jobs here from " +
				"another machine; see roost-login(1)"},
			&ucli.IntFlag{Name: "pilots", Usage: "instead, print what `N` pilots need that run your tasks in another " +
				"batch system; see roost-pilot(1)"},
			&ucli.StringFlag{Name: "owner", Usage: "the pilots are of `USER`, or USER@NODE, and not yours; only " +
				"where the authority is, as root"},
			&ucli.StringFlag{Name: "for", Usage: "the `NAME` of the only node that may use it"},
			&ucli.StringFlag{Name: "expires", Usage: "how `LONG` it is good", Value: "1h"},
		), authorityFlags()...),
		Run: func(c *frame.Invocation) error {
			switch {
			case c.Flag("user"):
				return userToken(c)
			case c.IsFlagSet("pilots"):
				return pilotToken(c)
			case len(c.Args) == 0:
				return makeToken(c)
			case c.Args[0] == "list" && len(c.Args) == 1:
				return listTokens(c)
			case c.Args[0] == "rm" && len(c.Args) == 2:
				return removeToken(c, c.Args[1])
			}
			return frame.UsageErrorf("write it as roost token, roost token list, or roost token rm ID")
		},
	}
}

// authority connects to the authority on this machine.
func authority(c *frame.Invocation) (wire.AuthorityClient, error) {
	n, err := config.Load(c.StringFlag("config"))
	if err != nil {
		return nil, fmt.Errorf("%w (roost init begins a pool)", err)
	}
	if n.Authority == nil {
		at := "it is not named in the node file"
		if n.AuthorityAt != "" {
			at = "it is at " + n.AuthorityAt
		}
		return nil, fmt.Errorf("%s: %w: the authority of the pool is not on this machine (%s): run this there", n.File,
			roost.Conflict, at)
	}
	conn, err := rpc.Dial("unix:"+n.AuthoritySocket(), nil, "")
	if err != nil {
		return nil, err
	}
	c.CloseLater(conn)
	return wire.NewAuthorityClient(conn), nil
}

// authorityUnanswered says what to do where the authority does not answer.
func authorityUnanswered(err error) error {
	err = rpc.FromStatus(err)
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "permission denied"):
		return fmt.Errorf("authority: %w: become root for this (sudo)", roost.PermissionDenied)
	case rpc.KindOf(err) == roost.Unavailable:
		return fmt.Errorf("authority: %w: it does not answer: is roost running here (systemctl status roost, or "+
			"roost master)?", roost.Unavailable)
	}
	return err
}

func makeToken(c *frame.Invocation) error {
	part, err := nodeRole(c)
	if err != nil {
		return err
	}
	if part == "" {
		return roleUsage()
	}
	life, err := roost.ParseDuration(c.StringFlag("expires"))
	if err != nil {
		return frame.UsageErrorf("--expires: %v", err)
	}
	client, err := authority(c)
	if err != nil {
		return err
	}
	made, err := client.MakeToken(c.Context,
		&wire.MakeTokenRequest{Part: string(part), Name: c.StringFlag("for"), Life: int64(life)})
	if err != nil {
		return authorityUnanswered(err)
	}
	line := joinLine(made.GetAddress(), made.GetToken(), part)
	fmt.Fprintf(c.Stderr, "Run this on the new machine, as root, before %s. It is good for one machine, and whoever "+
		"has it can use it.\n\n", time.Unix(0, made.GetInfo().GetExpires()).Format("Mon 15:04"))
	_, err = fmt.Fprintln(c.Stdout, line)
	return err
}

func removeToken(c *frame.Invocation, id string) error {
	client, err := authority(c)
	if err != nil {
		return err
	}
	gone, err := client.RemoveToken(c.Context, &wire.RemoveTokenRequest{Id: id})
	if err != nil {
		return authorityUnanswered(err)
	}
	fmt.Fprintf(c.Stderr, "Token %s is gone.\n", gone.GetRemoved().GetId())
	if by := gone.GetRemoved().GetUsedBy(); by != "" {
		fmt.Fprintf(c.Stderr, "%s has used it and stays a member; roost revoke %s puts it out.\n", by, by)
	}
	return nil
}

func revokeNode(c *frame.Invocation) error {
	client, err := authority(c)
	if err != nil {
		return err
	}
	if _, err := client.Revoke(c.Context,
		&wire.RevokeRequest{Name: c.Args[0], Reason: c.StringFlag("reason")}); err != nil {
		return authorityUnanswered(err)
	}
	fmt.Fprintf(c.Stderr, "%s is out: the authority refuses it now, and the other nodes when they have fetched the "+
		"list, within 15 seconds.\n", c.Args[0])
	return nil
}

// tokenState is a token's, for people.
func tokenState(t *wire.TokenInfo, now time.Time) string {
	switch {
	case t.GetUses() > 0 && now.UnixNano() < t.GetExpires():
		return fmt.Sprintf("%d of %d pilots of %s have joined", t.GetJoined(), t.GetUses(), t.GetOwner())
	case t.GetUsed() != 0:
		return "used by " + t.GetUsedBy() + " from " + t.GetUsedFrom()
	case now.UnixNano() >= t.GetExpires():
		return "ran out"
	}
	return "open"
}

func memberState(m *wire.MemberInfo, now time.Time) string {
	switch {
	case m.GetRevoked() != 0:
		return "revoked: " + m.GetReason()
	case now.UnixNano() >= m.GetExpires():
		return "expired"
	case m.GetOwner() != "":
		return "pilot of " + m.GetOwner()
	}
	return "member"
}

// listTokens shows what was given out: the tokens, and the machines that they have let
// in.
func listTokens(c *frame.Invocation) error {
	client, err := authority(c)
	if err != nil {
		return err
	}
	all, err := client.Members(c.Context, &wire.MembersRequest{})
	if err != nil {
		return authorityUnanswered(err)
	}
	now := c.Now()
	t := &frame.TextTable{Columns: []frame.TableColumn{{Head: "TOKEN"}, {Head: "FOR"}, {Head: "NAME"},
		{Head: "EXPIRES"},
		{Head: "STATE", MinWidth: 12}}}
	for _, k := range all.GetTokens() {
		t.AddRow(frame.TableCell{Text: k.GetId()}, frame.TableCell{Text: k.GetPart()},
			frame.TableCell{Text: cmp.Or(k.GetName(), "-")},
			frame.TableCell{Text: admin.UntilText(c, time.Unix(0, k.GetExpires()))},
			frame.TableCell{Text: tokenState(k, now)})
	}
	if len(t.Rows) > 0 {
		t.Print(c.Stdout, c.OutScreen)
		fmt.Fprintln(c.Stdout)
	}
	m := &frame.TextTable{Columns: []frame.TableColumn{{Head: "NODE"}, {Head: "PART"}, {Head: "FROM", DropPriority: 2},
		{Head: "JOINED", DropPriority: 1}, {Head: "EXPIRES"}, {Head: "STATE", MinWidth: 12}}}
	for _, k := range all.GetMembers() {
		m.AddRow(frame.TableCell{Text: k.GetName()},
			frame.TableCell{Text: cmp.Or(k.GetPart(), strings.Join(k.GetRoles(), ","), "-")},
			frame.TableCell{Text: cmp.Or(k.GetFrom(), "-")},
			frame.TableCell{Text: admin.UntilText(c, time.Unix(0, k.GetJoined()))},
			frame.TableCell{Text: admin.UntilText(c, time.Unix(0, k.GetExpires()))},
			frame.TableCell{Text: document.PrintableText(memberState(k, now))})
	}
	m.Print(c.Stdout, c.OutScreen)
	return nil
}
