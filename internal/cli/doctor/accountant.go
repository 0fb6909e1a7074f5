package doctor

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting/query"
	"github.com/roost-batch/roost/internal/cli/accounts"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/rpc"
)

const (
	accountsCheck  = "accountant"
	accountantWait = 5 * time.Second
	maxLag         = 5 * time.Minute
	maxClockDrift  = time.Minute
	feedWarning    = 512 * roost.MiB // half of what a schedd keeps for an accountant that is away
)

// examineAccountant checks the accountant of the pool as this node sees it. It looks
// whether it answers, how far it has read, where it stores, and what waits for it here.
func examineAccountant(c *frame.Invocation, n *config.Node) (findings []checkResult) {
	if n == nil || n.Accountant == nil && n.AccountantAt == "" {
		return nil
	}
	if n.Accountant != nil {
		findings = append(findings, checkAccountStore(n.Accountant)...)
	}
	if n.Schedd != nil {
		if f, ok := checkFeed(filepath.Join(n.Dir, "schedd")); ok {
			findings = append(findings, f)
		}
		findings = append(findings, checkSources(c)...)
	}
	return findings
}

// checkAccountStore checks where the accountant of this node has its data.
func checkAccountStore(a *config.AccountantSettings) (findings []checkResult) {
	engine := "SQLite in " + a.Dir
	if a.Database != "" {
		engine = "PostgreSQL, and " + a.Dir
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(a.Dir, &disk); err != nil {
		return []checkResult{{accountsCheck, levelWarning, fmt.Sprintf("%s: %v", a.Dir, err),
			"the accountant makes it when it starts; look at accountant.log in the pool's log directory"}}
	}
	free := roost.Bytes(disk.Bavail) * roost.Bytes(disk.Bsize)
	f := checkResult{accountsCheck, levelOK, fmt.Sprintf("it stores in %s; %v free", engine, free), ""}
	if free < minFreeDisk {
		f.Level, f.Hint = levelWarning, "make room: nothing is lost while the schedds can wait, for 30 days or 1 GiB"
	}
	return []checkResult{f}
}

// checkFeed checks how much of a schedd's news waits for the accountant. ok is false
// where there is no feed, or who asks may not look.
func checkFeed(dir string) (f checkResult, ok bool) {
	size := int64(0)
	err := filepath.WalkDir(filepath.Join(dir, "feed.log"), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		return f, false
	}
	f = checkResult{"feed", levelOK, fmt.Sprintf("%v of news for the accountant", roost.Bytes(size)), ""}
	if roost.Bytes(size) > feedWarning {
		f.Level, f.Hint = levelWarning, "is the accountant away? beyond 1 GiB the schedd drops its news, and the "+
			"accountant reads the history instead"
	}
	return f, true
}

// checkSources asks the accountant, by the schedd, how far it has read each feed.
func checkSources(c *frame.Invocation) []checkResult {
	lines, err := readSources(c)
	if err != nil {
		return []checkResult{{accountsCheck, levelError, firstLine(frame.ErrorText(rpc.FromStatus(err))),
			"jobs go on without it; look at accountant.log on its node"}}
	}
	return sourceFindings(lines, c.Now())
}

func readSources(c *frame.Invocation) (lines []query.SourceLine, err error) {
	err = accounts.Ask(c, &query.Query{Report: query.Sources}, accountantWait, func(line *query.SourceLine) error {
		lines = append(lines, *line)
		return nil
	})
	return lines, err
}

// sourceFindings judges how far the accountant has read the feeds.
func sourceFindings(lines []query.SourceLine, now time.Time) (findings []checkResult) {
	add := func(l checkLevel, cure, format string, args ...any) {
		findings = append(findings, checkResult{accountsCheck, l, fmt.Sprintf(format, args...), cure})
	}
	for _, line := range lines {
		lag := now.Sub(time.UnixMilli(int64(line.Complete)))
		switch {
		case line.Error != "":
			add(levelWarning, "it tries again; look at that schedd, and at accountant.log on the accountant's node",
				"the feed of %s cannot be read: %s", line.Host, line.Error)
		case line.Gaps > 0:
			add(levelWarning, "it fills them from the history of that schedd; keep_history has to reach so far back",
				"the feed of %s has gaps that are not filled: %d", line.Host, line.Gaps)
		case lag > maxLag:
			add(levelWarning, "it catches up by itself, unless its log says otherwise", "%s behind the schedd %s",
				document.SpanText(lag), line.Host)
		case time.Duration(line.Skew).Abs()*time.Millisecond > maxClockDrift:
			add(levelWarning, "run an NTP client on the nodes", "the clocks of %s and of its nodes differ by %s",
				line.Host, document.SpanText(time.Duration(line.Skew).Abs()*time.Millisecond))
		}
		if line.Refused > 0 {
			add(levelWarning, "look at accountant.log on its node, and at the versions of both",
				"it has refused %d entries of %s that made no sense", line.Refused, line.Host)
		}
	}
	if len(findings) == 0 {
		add(levelOK, "", "it answers, and has all of %s", document.Plural(len(lines), "schedd"))
	}
	return findings
}
