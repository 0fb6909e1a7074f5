package pbsframe

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/config/pooldir"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/identity/loginfile"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// The server that PBS_DEFAULT, or PBS_SERVER, names is the schedd of a node. It is where
// a command goes whose operands say nothing else.

// BadHost is PBS's exit status where no server has the name that was given.
const BadHost = 160

// ReadServerVariable makes the server that the environment names the one of the command,
// unless the command line names another.
func ReadServerVariable(c *frame.Invocation) error {
	named := namedServer(c)
	if named == "" || c.ScheddName() != "" ||
		len(c.Args) == 1 && strings.HasPrefix(c.Args[0], "--") || namesServer(c.Command.Name, c.Args) {
		return nil
	}
	node, ok := FindServer(c, named)
	if !ok {
		return UnknownServer(c, named)
	}
	c.SetDefaultNode(node)
	return nil
}

// UnknownServer prints that no server has this name, and returns the exit status of PBS
// for that.
func UnknownServer(c *frame.Invocation, name string) error {
	fmt.Fprintf(c.Stderr, "Unknown Host.\n%s: cannot connect to server %s (errno=15008)\n", c.Command.Name,
		document.PrintableText(name))
	return frame.ExitError(BadHost)
}

// namedServer is the host that the environment names. PBS_SERVER of a job is not its
// user's word: Roost has set it.
func namedServer(c *frame.Invocation) string {
	named := c.Getenv("PBS_DEFAULT")
	if named == "" && c.Getenv("PBS_JOBID") == "" {
		named = c.Getenv("PBS_SERVER")
	}
	host, _, _ := strings.Cut(strings.TrimSpace(named), ":")
	return host
}

// namesServer reports whether a command line names a server itself, by all its ids or by
// a destination.
func namesServer(name string, args []string) bool {
	ids, own := 0, 0
	for i, arg := range args {
		arg = strings.TrimSpace(arg)
		if name == "pbsnodes" && strings.HasPrefix(arg, "-s") {
			return true
		}
		ofQueue := strings.HasPrefix(arg, "-q") || i > 0 && args[i-1] == "-q" ||
			name == "qstat" && !strings.HasPrefix(arg, "-")
		if _, ok := ParseID(arg); ok {
			if ids++; frame.IDHost(arg) != "" || OperandHost(arg) != "" {
				own++
			}
		} else if ofQueue && strings.Contains(arg, "@") {
			return true
		}
	}
	return ids > 0 && ids == own
}

// FindServer finds the node whose schedd a name means. It is "" for this machine's, a
// node with a login of the user, or another of the pool.
func FindServer(c *frame.Invocation, name string) (node string, ok bool) {
	if strings.EqualFold(name, "localhost") || strings.EqualFold(name, pooldir.HostName()) {
		return "", true
	}
	local := localServer(c)
	if strings.EqualFold(local, name) {
		return "", true
	}
	var others []string
	if dir, err := loginfile.Dir(c.Getenv); err == nil {
		others = loginfile.Nodes(dir)
	}
	if found := qsub.MatchingMachines(name, others); len(found) == 1 {
		return found[0], true
	}
	if local == "" {
		return "", false
	}
	all := append(others, local)
	texts, err := c.QueryAds(&scheddapi.AdQuery{Type: "Scheduler", Projection: []string{roost.AttrName}})
	for _, text := range texts {
		if ad, perr := classad.Parse(text); err == nil && perr == nil {
			if other, ok := ad.Str(roost.AttrName); ok && !slices.Contains(all, other) {
				all = append(all, other)
			}
		}
	}
	// PBS wants whole names of hosts, and a node may be called by less
	for _, form := range []string{name, shortHost(name)} {
		if found := qsub.MatchingMachines(form, all); len(found) == 1 {
			if found[0] == local {
				return "", true
			}
			return found[0], true
		}
	}
	return "", SameHost(name, pooldir.HostName())
}

func shortHost(name string) string {
	short, _, _ := strings.Cut(name, ".")
	return short
}

// localServer is the name of this machine's schedd; empty where there is none that
// answers.
func localServer(c *frame.Invocation) string {
	conn, err := c.DialSchedd()
	if err != nil {
		return ""
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(c.Context, frame.AskTimeout)
	defer cancel()
	h, err := scheddapi.NewScheddClient(conn).Health(ctx, &scheddapi.HealthRequest{Brief: true})
	if err != nil {
		return ""
	}
	return h.GetName()
}
