package wire

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

var recordRelease = flag.Bool("record-release", false,
	"write the messages of this release, which later ones must understand")

// releasedMessages has the messages of the last release, one field, value or call a line.
const releasedMessages = "testdata/released.txt"

// messageLines describes what two programs must agree on to understand each other. The
// name of a field is in its line, too, because JSON and people use it.
func messageLines(files ...protoreflect.FileDescriptor) (lines []string) {
	for _, f := range files {
		lines = append(lines, enumLines(f.Enums())...)
		lines = append(lines, fieldLines(f.Messages())...)
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			for j := range s.Methods().Len() {
				m := s.Methods().Get(j)
				lines = append(lines, fmt.Sprintf("call %s: %s %v -> %s %v", m.FullName(), m.Input().FullName(),
					m.IsStreamingClient(), m.Output().FullName(), m.IsStreamingServer()))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func enumLines(all protoreflect.EnumDescriptors) (lines []string) {
	for i := range all.Len() {
		e := all.Get(i)
		for j := range e.Values().Len() {
			v := e.Values().Get(j)
			lines = append(lines, fmt.Sprintf("value %s = %d: %s", e.FullName(), v.Number(), v.Name()))
		}
	}
	return lines
}

func fieldLines(all protoreflect.MessageDescriptors) (lines []string) {
	for i := range all.Len() {
		m := all.Get(i)
		lines = append(lines, enumLines(m.Enums())...)
		lines = append(lines, fieldLines(m.Messages())...)
		for j := range m.Fields().Len() {
			f := m.Fields().Get(j)
			kind := f.Kind().String()
			if f.Message() != nil {
				kind = string(f.Message().FullName())
			} else if f.Enum() != nil {
				kind = string(f.Enum().FullName())
			}
			group := ""
			if o := f.ContainingOneof(); o != nil && !o.IsSynthetic() {
				group = " in " + string(o.Name())
			}
			lines = append(lines, fmt.Sprintf("field %s = %d: %s %s %s packed=%v%s", m.FullName(), f.Number(),
				f.Cardinality(), kind, f.Name(), f.IsPacked(), group))
		}
	}
	return lines
}

// brokenLines returns what programs of the release rely on, and the messages of now lack.
func brokenLines(released, now []string) (broken []string) {
	for _, line := range released {
		if _, found := slices.BinarySearch(now, line); !found {
			broken = append(broken, line)
		}
	}
	return broken
}

// TestMessagesOfLastRelease: messages are only added to, so that daemons of this release
// and of the last one understand each other.
func TestMessagesOfLastRelease(t *testing.T) {
	now := messageLines(File_roost_proto, scheddapi.File_scheddapi_schedd_proto)
	if *recordRelease {
		if err := os.WriteFile(releasedMessages, []byte(strings.Join(now, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(releasedMessages)
	if err != nil {
		t.Fatal(err)
	}
	released := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(released) < 1000 {
		t.Fatalf("%s has %d lines", releasedMessages, len(released))
	}
	for _, line := range brokenLines(released, now) {
		t.Errorf("the last release has this, and the messages have it no more: %s\nLeave it as it is, and add a field "+
			"or a call beside it.", line)
	}
}

// TestBrokenMessages: a field that is removed, or has another number, name or type, is
// found. One that is added is not.
func TestBrokenMessages(t *testing.T) {
	now := messageLines(File_roost_proto, scheddapi.File_scheddapi_schedd_proto)
	if got := brokenLines(now, now); len(got) != 0 {
		t.Fatalf("the same messages differ: %q", got)
	}
	i := slices.IndexFunc(now, func(line string) bool { return strings.HasPrefix(line, "field ") })
	number, _, _ := strings.Cut(now[i], ":")
	for what, line := range map[string]string{
		"number": strings.Replace(now[i], number, number+"9", 1),
		"name":   strings.Replace(now[i], " packed=", "2 packed=", 1),
		"type":   strings.Replace(now[i], ": optional ", ": repeated ", 1),
	} {
		changed := slices.Clone(now)
		changed[i] = line
		slices.Sort(changed)
		if got := brokenLines(now, changed); len(got) != 1 || line == now[i] {
			t.Errorf("a changed %s, %q: broken %q", what, line, got)
		}
	}
	if got := brokenLines(now, slices.Delete(slices.Clone(now), i, i+1)); len(got) != 1 {
		t.Errorf("a removed field: broken %q", got)
	}
	if got := brokenLines(slices.Delete(slices.Clone(now), i, i+1), now); len(got) != 0 {
		t.Errorf("an added field: broken %q", got)
	}
}
