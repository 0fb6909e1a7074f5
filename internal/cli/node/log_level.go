package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/nodeaccess"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/daemon"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/master"
	"github.com/roost-batch/roost/internal/suggest"
)

// usualLevel is the word for no other level.
const usualLevel = "usual"

// LogLevelCommand returns roost log-level: change what daemons log, for a time.
func LogLevelCommand() *frame.Command {
	return &frame.Command{
		Name: "log-level", Group: frame.GroupPool, Summary: "change what daemons of this machine log, for a time",
		Synopsis: "[DAEMON|all LEVEL]", MaxOperands: 2, OperandName: "DAEMON", Run: changeLogLevel,
		Description: "Changes the log level of a running daemon of this machine, or of all, to debug, info, warn or " +
			"error. It is the usual one again after a time. The daemon logs who asked for it. Without operands it " +
			"lists the levels that are not the usual ones.",
		Examples: []frame.Example{
			{Line: "roost log-level schedd debug", Description: "see more of the schedd for ten minutes"},
			{Line: "roost log-level all debug --for 2m", Description: "see more of all daemons for two"},
			{Line: "roost log-level all usual", Description: "end it"},
		},
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "for", Usage: "for this `TIME`, at most a day", Value: "10m"},
			&ucli.StringFlag{Name: "config", Usage: "the node's `FILE`, see roost-node(5)"}, frame.JSONFlag(),
		},
	}
}

func changeLogLevel(c *frame.Invocation) error {
	n, err := nodeaccess.ReadNodeFile(c)
	if err != nil {
		return err
	}
	path := daemon.LogLevelsPath(n.RunDir())
	levels, err := daemon.ReadLogLevels(path)
	if err != nil {
		return err
	}
	now := c.Now()
	if len(c.Args) > 0 {
		set, err := wantedLevels(c, n, now)
		if err != nil {
			return err
		}
		levels.Set(now, set...)
		if err := levels.Write(path); errors.Is(err, fs.ErrPermission) {
			return frame.KindErrorf(roost.PermissionDenied, "only the account of the master and root can change log "+
				"levels: %s is not yours", path)
		} else if errors.Is(err, fs.ErrNotExist) {
			return frame.KindErrorf(roost.Unavailable, "no master has ever run in %s on this machine", n.Dir)
		} else if err != nil {
			return err
		}
	}
	levels.Set(now) // without what is over
	if c.WantsJSON() {
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{"levels": append([]daemon.LogLevel{}, levels.Levels...)})
	}
	for _, l := range levels.Levels {
		fmt.Fprintf(c.Stdout, "%s: %s for %s more, asked for by %s\n", document.PrintableText(l.Daemon),
			strings.ToLower(l.Level.String()), document.SpanText(l.Until.Sub(now)), document.PrintableText(l.By))
	}
	if len(levels.Levels) == 0 {
		fmt.Fprintln(c.Stdout, "all daemons have their usual levels")
	}
	return nil
}

// wantedLevels reads the operands.
func wantedLevels(c *frame.Invocation, n *config.Node, now time.Time) (set []daemon.LogLevel, err error) {
	if len(c.Args) != 2 {
		return nil, frame.UsageErrorf("write it as roost log-level DAEMON LEVEL, as in roost log-level schedd debug")
	}
	one := daemon.LogLevel{Since: now.UTC(), By: callerName()}
	if c.Args[1] != usualLevel {
		if !slices.Contains([]string{"debug", "info", "warn", "error"}, c.Args[1]) {
			return nil, frame.UsageErrorf("%q is no level; there are debug, info, warn, error and %s", c.Args[1],
				usualLevel)
		}
		if err := one.Level.UnmarshalText([]byte(c.Args[1])); err != nil {
			return nil, err
		}
		span, err := roost.ParseDuration(c.StringFlag("for"))
		if err != nil || span <= 0 || span > daemon.MaxLogLevelTime {
			return nil, frame.UsageErrorf("--for: %q is no time up to a day; write it as 10m or 2h",
				c.StringFlag("for"))
		}
		one.Until = one.Since.Add(span)
	}
	names := daemonRoles(n)
	if c.Args[0] != "all" {
		if !slices.Contains(names, c.Args[0]) {
			hint := ""
			if near := suggest.Nearest(c.Args[0], names); near != "" {
				hint = "; did you mean " + near + "?"
			}
			return nil, frame.UsageErrorf("this machine has no daemon %q; it has %s%s", c.Args[0],
				strings.Join(names, ", "), hint)
		}
		names = c.Args[:1]
	}
	for _, name := range names {
		one.Daemon = name
		set = append(set, one)
	}
	return set, nil
}

// daemonRoles are the daemons of a node, all startds being one.
func daemonRoles(n *config.Node) (names []string) {
	for _, title := range master.DaemonNames(n) {
		role, _, _ := strings.Cut(title, " ")
		if !slices.Contains(names, role) {
			names = append(names, role)
		}
	}
	return names
}

// callerName names the account that calls, for logs.
func callerName() string {
	u, err := user.Current()
	if err != nil {
		return "an unknown account"
	}
	if _, err := strconv.Atoi(u.Username); err == nil {
		return "uid " + u.Uid
	}
	return u.Username
}
