package cli

import (
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/authority"
	"github.com/roost-batch/roost/internal/settle"
)

// partFlags say what a machine is to be in the pool.
func partFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.BoolFlag{Name: "server", Usage: "the machine runs jobs, and people submit there"},
		&ucli.BoolFlag{Name: "desktop", Usage: "likewise, while its owner does not need it"},
		&ucli.BoolFlag{Name: "central", Usage: "the machine is another central manager"},
		&ucli.BoolFlag{Name: "submit", Usage: "people submit there, and nothing runs there"},
	}
}

// part is what the flags say, "" where they say nothing.
func (c *call) part() (authority.Part, error) {
	var found authority.Part
	for _, p := range authority.Parts() {
		if !c.flag(string(p)) {
			continue
		}
		if found != "" {
			return "", usage("--%s and --%s: a machine is one of them", found, p)
		}
		found = p
	}
	return found, nil
}

func joinCommand() *command {
	return &command{
		name: "join", group: groupPool, brief: "make this machine a member of a pool", args: "HOST[:PORT] TOKEN", least: 2, most: 2, wants: "the line that roost token has printed",
		about: "Makes this machine a member of the pool whose administrator has given you the line. Its private key is made here and stays here. The authority of the pool is known by the token: nothing is sent to any other. " +
			"With systemd the node starts now and whenever the machine does. A desktop lends nothing before its owner has agreed.",
		examples: []example{
			{"sudo roost join 10.0.0.1:9700 rt1… --desktop", "join as the desktop that the token is for"},
			{"sudo roost join 10.0.0.1:9700 rt1… --server --name n7 --address 10.0.0.7", "say by what name and address the pool is to know it"},
		},
		flags: append(append(partFlags(),
			&ucli.StringFlag{Name: "name", Usage: "the node's `NAME`; this machine's unless given"},
			&ucli.StringFlag{Name: "address", Usage: "where the pool reaches this machine, as `HOST[:PORT]`; the address that leads to the authority unless given"},
		), settling()...),
		do: joinPool,
	}
}

func joinPool(c *call) error {
	part, err := c.part()
	if err != nil {
		return err
	}
	token, err := authority.ParseToken(c.args[1])
	if err != nil {
		return err
	}
	done, err := settle.Join(c.ctx, settle.Joining{
		Place: c.place(), Authority: c.args[0], Token: token, Part: part, Name: c.text("name"), Address: c.text("address"),
	})
	if err != nil {
		return fmt.Errorf("join: %w", err)
	}
	n := done.Node
	fmt.Fprintf(c.stderr, "This machine is now %s, a %s of the pool %s. Its node file is %s.\n", n.Name, done.Part, n.Pool, n.File)
	if done.Behind != "" {
		fmt.Fprintf(c.stderr, "The pool sees it as %s: an address is translated between. Unless the pool reaches it by the address in the node file, name one that it does reach there.\n", done.Behind)
	}
	switch done.Part {
	case authority.Desktop:
		fmt.Fprintf(c.stderr, "It lends nothing before its owner has agreed: roost resume\n")
	case authority.Central:
		fmt.Fprintf(c.stderr, "Once it runs, take it in on the first central manager with roost cell add %s, and put %s into collectors and %s into negotiators of the other nodes' files.\n",
			n.Negotiator.Listen[0], n.Collector.Listen[0], n.Negotiator.Listen[0])
	}
	return c.start(n.File, done.Part == authority.Desktop)
}

// poolLine is what makes a machine a member.
func poolLine(address, token string, part authority.Part) string {
	return strings.Join([]string{"roost", "join", address, token, "--" + string(part)}, " ")
}

func revokeCommand() *command {
	return &command{
		name: "revoke", group: groupPool, brief: "put a machine out of the pool", args: "NODE", least: 1, most: 1, wants: "the name of a node",
		about: "Revokes the certificates of a node. The authority refuses it at once, and every other node as soon as it has fetched the list, which they do every 15 seconds. Run it where the pool's authority is, as root.",
		examples: []example{
			{"sudo roost revoke d7 --reason stolen", "d7 is out of the pool"},
			{"sudo roost token --desktop --for d7", "and this lets it in again"},
		},
		flags: append([]ucli.Flag{&ucli.StringFlag{Name: "reason", Usage: "`WHY`, for the log and for who asks"}}, authorityFlags()...),
		do:    revokeNode,
	}
}

func usageOfParts() error {
	return advise(usage("say what the machine is to be: --server, --desktop, --central or --submit"), `as in: roost token --desktop`)
}
