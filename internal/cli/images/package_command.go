package images

import (
	"context"
	"fmt"
	"os"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/image"
	"github.com/roost-batch/roost/internal/image/imageref"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// PackageCommand returns roost package: packages and their labels.
func PackageCommand() *frame.Command {
	return &frame.Command{
		Name: "package", Group: frame.GroupChange, Summary: "packages for your tasks, and their labels",
		Synopsis: "[list [NAME] | push DIR NAME@VERSION | show NAME | label NAME@LABEL NAME@VERSION | " +
			"rm NAME@LABEL…]",
		MaxOperands: -1, Branches: packageBranches,
		Run: func(c *frame.Invocation) error { return c.RunSubcommand(packageBranches()) },
		Description: "Puts directories with files into the store of the pool, from where the machines get them, " +
			"once each. A job says package \"NAME@LABEL\" { at = \"/app\" }. NAME@VERSION, such as web@1.4, begins " +
			"with a digit and never changes. NAME@LABEL, such as web@live, is moved with label; a job has what it " +
			"meant when the job was submitted.",
		Examples: []frame.Example{
			{Line: "roost package push build web@1.4", Description: "everybody may use it from now on"},
			{Line: "roost package label web@live web@1.4", Description: "new jobs that name web@live get 1.4"},
			{Line: "roost package show web", Description: "its versions, its labels, and when they moved"},
		},
		Flags: []ucli.Flag{frame.JSONFlag(),
			&ucli.BoolFlag{Name: "any-case", Usage: "push: names of files may differ in case only"}},
	}
}

func packageBranches() []frame.Subcommand {
	json := []string{"json"}
	return []frame.Subcommand{
		{Name: "list", Summary: "list the names, or one with its versions", Flags: json, MaxOperands: 1,
			OperandNames: "a name", Run: listPackages},
		{Name: "push", Summary: "put a directory into the pool as a version", Flags: []string{"json", "any-case"},
			MinOperands: 2, MaxOperands: 2, OperandNames: "a directory and NAME@VERSION", Run: pushPackage},
		{Name: "show", Summary: "show a name's versions, labels and history", Flags: json, MinOperands: 1,
			MaxOperands: 1, OperandNames: "a name", Run: showPackage},
		{Name: "label", Summary: "have a label name a version", Flags: json, MinOperands: 2, MaxOperands: 2,
			OperandNames: "NAME@LABEL and NAME@VERSION", Run: labelPackage},
		{Name: "rm", Summary: "remove versions and labels", Flags: json, MinOperands: 1, MaxOperands: -1,
			OperandNames: "NAME@VERSION or NAME@LABEL", Run: removePackages},
	}
}

// storedReference parses NAME@VERSION or NAME@LABEL.
func storedReference(text string) (r imageref.Reference, err error) {
	name, label, ok := strings.Cut(text, "@")
	if !ok || !imageref.ValidName(name) || !imageref.ValidName(label) {
		return r, frame.WithHint(frame.UsageErrorf("%.200q is not NAME@VERSION or NAME@LABEL", text),
			"each has up to 100 lower-case letters, digits and . _ -, and begins with a letter or digit")
	}
	return imageref.Parse(text)
}

// versionReference parses NAME@VERSION.
func versionReference(text string) (r imageref.Reference, err error) {
	if r, err = storedReference(text); err == nil && !imageref.IsVersion(r.Label) {
		err = frame.WithHint(frame.UsageErrorf("%q is a label, and only versions are pushed", text), fmt.Sprintf(
			"a version begins with a digit: push %s@1, then: roost package label %s %s@1", r.Name, text, r.Name))
	}
	return r, err
}

// changePackage has the pool change a name.
func changePackage(c *frame.Invocation, change *scheddapi.PackageChange) (v *scheddapi.PackageVersion, err error) {
	err = c.CallSchedd(frame.SubmitTimeout, func(ctx context.Context, s *scheddapi.ScheddClient) (err error) {
		v, err = s.SetPackage(ctx, change)
		return err
	})
	return v, err
}

func pushPackage(c *frame.Invocation, args []string) error {
	r, err := versionReference(args[1])
	if err != nil {
		return err
	}
	dir := c.AbsolutePath(args[0])
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return frame.KindErrorf(roost.NoInput, "%s is no directory that can be read: a package is made of one", args[0])
	}
	built, err := runBuilder(c, r.Text, true, func(b image.Builder, file *os.File) (image.Result, error) {
		b.Limits = image.PackageLimits()
		return b.BuildPackage(c.Context, dir, c.Flag("any-case"), file)
	})
	if err != nil {
		return err
	}
	v, err := changePackage(c, &scheddapi.PackageChange{Name: r.Name, Version: r.Label, Digest: string(built.digest)})
	if err != nil {
		return err
	}
	if c.WantsJSON() {
		d, err := documentFields(document.PackageVersionOf(v))
		if err != nil {
			return err
		}
		d["name"], d["files"], d["notes"] = r.Name, built.result.Files, list(built.result.Notes)
		return frame.PrintJSON(c.Stdout, d)
	}
	fmt.Fprintf(c.Stdout, "%s: %s, %v, %d files\n", r.Text, built.digest, roost.Bytes(built.result.Size),
		built.result.Files)
	for _, n := range built.result.Notes {
		fmt.Fprintf(c.Stderr, "note: %s\n", n)
	}
	return nil
}

func labelPackage(c *frame.Invocation, args []string) error {
	label, err := storedReference(args[0])
	if err != nil {
		return err
	}
	to, err := storedReference(args[1])
	if err != nil {
		return err
	}
	switch {
	case imageref.IsVersion(label.Label):
		return frame.WithHint(frame.UsageErrorf("%q is a version, and a version never moves", args[0]),
			"a label begins with a letter: roost package label "+label.Name+"@live "+args[1])
	case to.Name != label.Name:
		return frame.UsageErrorf("%q and %q have different names: a label names a version of its own name", args[0],
			args[1])
	}
	v, err := changePackage(c, &scheddapi.PackageChange{Name: label.Name, Label: label.Label, Version: to.Label})
	if err != nil {
		return err
	}
	if c.WantsJSON() {
		d, err := documentFields(document.PackageVersionOf(v))
		if err != nil {
			return err
		}
		d["name"], d["label"] = label.Name, label.Label
		return frame.PrintJSON(c.Stdout, d)
	}
	fmt.Fprintf(c.Stdout, "%s is %s@%s now\n", label.Text, label.Name, v.GetVersion())
	return nil
}

func removePackages(c *frame.Invocation, args []string) error {
	var changes []*scheddapi.PackageChange
	for _, text := range args {
		r, err := storedReference(text)
		if err != nil {
			return err
		}
		change := &scheddapi.PackageChange{Name: r.Name, Remove: true}
		if imageref.IsVersion(r.Label) {
			change.Version = r.Label
		} else {
			change.Label = r.Label
		}
		changes = append(changes, change)
	}
	removed := []string{}
	for i, change := range changes {
		if _, err := changePackage(c, change); err != nil {
			return err
		}
		removed = append(removed, args[i])
	}
	if c.WantsJSON() {
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{"removed": removed})
	}
	return nil
}
