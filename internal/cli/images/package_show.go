package images

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/image/imageref"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// packagesOf asks for names: one, or all.
func packagesOf(c *frame.Invocation, name string) (all []*scheddapi.Package, err error) {
	if name != "" && !imageref.ValidName(name) {
		return nil, frame.WithHint(frame.UsageErrorf("%.200q is no name of a package", name),
			"name it without version and label, such as web")
	}
	query := &scheddapi.PackageQuery{Name: name}
	for more := true; more; {
		if err := c.CallSchedd(frame.AskTimeout, func(ctx context.Context, s *scheddapi.ScheddClient) error {
			reply, err := s.ListPackages(ctx, query)
			if err == nil {
				all, more = append(all, reply.GetPackages()...), reply.GetMore() && len(reply.GetPackages()) > 0
			}
			return err
		}); err != nil {
			return nil, err
		}
		if more {
			query.After = all[len(all)-1].GetName()
		}
	}
	return all, nil
}

func listPackages(c *frame.Invocation, args []string) error {
	if len(args) > 0 {
		return showPackage(c, args)
	}
	all, err := packagesOf(c, "")
	if err != nil {
		return err
	}
	if c.WantsJSON() {
		documents := []document.Package{}
		for _, p := range all {
			documents = append(documents, document.PackageOf(p))
		}
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{"packages": documents})
	}
	if len(all) == 0 {
		fmt.Fprintln(c.Stdout, "no packages; roost package push DIR NAME@VERSION puts one into the pool")
		return nil
	}
	table := tabwriter.NewWriter(c.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tOWNER\tVERSIONS\tLABELS")
	for _, p := range all {
		var labels []string
		for _, l := range p.GetLabels() {
			labels = append(labels, l.GetLabel()+"="+l.GetVersion())
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\n", p.GetName(), ownerOf(p), p.GetVersionCount(), strings.Join(labels, " "))
	}
	return table.Flush()
}

// ownerOf names the owner of a name.
func ownerOf(p *scheddapi.Package) string {
	if p.GetNode() == "" {
		return p.GetOwner()
	}
	return p.GetOwner() + "@" + p.GetNode()
}

func showPackage(c *frame.Invocation, args []string) error {
	all, err := packagesOf(c, args[0])
	if err != nil {
		return err
	}
	if len(all) != 1 {
		return frame.KindErrorf(roost.Internal, "package %s: %d answers came", args[0], len(all))
	}
	p := all[0]
	if c.WantsJSON() {
		d, err := documentFields(document.PackageOf(p))
		if err != nil {
			return err
		}
		versions, history := []document.PackageVersion{}, []document.PackageMove{}
		for _, v := range p.GetVersions() {
			versions = append(versions, document.PackageVersionOf(v))
		}
		for _, m := range p.GetHistory() {
			history = append(history, document.PackageMoveOf(m))
		}
		d["versions"], d["history"] = versions, history
		return frame.PrintJSON(c.Stdout, d)
	}
	printPackage(c, p)
	return nil
}

func printPackage(c *frame.Invocation, p *scheddapi.Package) {
	fmt.Fprintf(c.Stdout, "%s, of %s\n\n", p.GetName(), ownerOf(p))
	table := tabwriter.NewWriter(c.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "VERSION\tSIZE\tBY\tMADE\tDIGEST\tLABELS")
	for _, v := range slices.Backward(p.GetVersions()) {
		var labels []string
		for _, l := range p.GetLabels() {
			if l.GetVersion() == v.GetVersion() {
				labels = append(labels, l.GetLabel())
			}
		}
		fmt.Fprintf(table, "%s\t%v\t%s\t%s\t%s\t%s\n", v.GetVersion(), roost.Bytes(v.GetSize()), v.GetUser(),
			localTime(v.GetTimeS()), v.GetDigest(), strings.Join(labels, " "))
	}
	table.Flush()
	if len(p.GetHistory()) == 0 {
		return
	}
	fmt.Fprintln(c.Stdout)
	table = tabwriter.NewWriter(c.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MOVED\tLABEL\tFROM\tTO\tBY")
	for _, m := range slices.Backward(p.GetHistory()) {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", localTime(m.GetTimeS()), m.GetLabel(), orDash(m.GetFrom()),
			orDash(m.GetTo()), m.GetUser())
	}
	table.Flush()
	if n := p.GetForgottenMoves(); n > 0 {
		fmt.Fprintf(c.Stdout, "and %d older moves, which are forgotten\n", n)
	}
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func localTime(seconds int64) string { return time.Unix(seconds, 0).Format(time.DateTime) }

// documentFields are the fields of a document of several commands, to which a command
// adds its own.
func documentFields(of any) (d frame.JSONDocument, err error) {
	text, err := json.Marshal(of)
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	return d, err
}
