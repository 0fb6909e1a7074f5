package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/provision/provider"
)

// fullProvider has all settings.
func fullProvider() provider.Settings {
	s := provider.Settings{Name: "uni", Kind: provider.Command, Walltime: 12 * time.Hour, Margin: time.Minute,
		Wait: time.Second, Idle: time.Hour, FirstTask: 2 * time.Hour, JoinWithin: time.Minute, NodesEach: 2,
		MaxPilots: 9, MaxQueued: 3, MaxNodeHours: 99.5, WithoutWalltime: true, Owners: []string{"ada"},
		Options: []string{"-A", "x y"},
		Via:     []string{"ssh", "h"}, Wrap: []string{"env"}, Directory: "/d", Program: "/p", Before: "a\nb",
		After: "c", Programs: map[string][]string{}}
	s.Node.Resources = roost.Resources{CPU: 2500, Memory: roost.GiB, Disk: roost.TiB, GPUs: 2}
	for _, verb := range provider.CommandVerbs() {
		s.Programs[verb] = []string{"my-" + verb}
	}
	return s
}

func TestPilotsRoundTrip(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x", "pilots.hcl")
	want := fullProvider()
	if err := AddPilotProvider(file, &want); err != nil {
		t.Fatal(err)
	}
	got, err := LoadPilots(file)
	if err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Fatalf("got  %+v\nwant %+v\n%v", got, want, err)
	}
	if err := AddPilotProvider(file, &want); !errors.Is(err, roost.Conflict) {
		t.Errorf("%v", err)
	}
	second := provider.Settings{Name: "lab", Kind: provider.Slurm, Walltime: time.Hour}
	if err := AddPilotProvider(file, &second); err != nil {
		t.Fatal(err)
	}
	if err := RemovePilotProvider(file, "uni"); err != nil {
		t.Fatal(err)
	}
	if got, err = LoadPilots(file); err != nil || len(got) != 1 || got[0].Name != "lab" || got[0].MaxPilots != 20 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := RemovePilotProvider(file, "uni"); !errors.Is(err, roost.NotFound) {
		t.Errorf("%v", err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestRemoveLeavesRest checks that comments and other providers stay as they are.
func TestRemoveLeavesRest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pilots.hcl")
	text := "# mine\nprovider \"a\" {\n  kind = \"slurm\"\n  walltime = \"1h\"\n}\n\n# the other\nprovider \"b\" {\n" +
		"  kind = \"pbs\" # old\n  walltime = \"2h\"\n}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := RemovePilotProvider(file, "a"); err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadFile(file)
	if want := "# mine\n" + text[strings.Index(text, "# the other"):]; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPilotsMistakes(t *testing.T) {
	begin := "provider \"a\" {\n"
	for text, want := range map[string]string{
		begin + "kind = \"slurm\"\n}\n":                                   "f:1:1: walltime: each provider needs one",
		begin + "kind = \"ec2\"\nwalltime = \"1h\"\n}\n":                  "f:2:8: kind: there is no kind",
		begin + "kind = \"pbs\"\nwalltme = \"1h\"\n}\n":                   "did you mean \"walltime\"?",
		"provider {\n}\n":                                                 "a provider has one name",
		begin + "kind = \"pbs\"\nwalltime = \"1h\"\nmargin = \"1h\"\n}\n": "f:4:10: margin: the margin is 1h",
		begin + "kind = \"pbs\"\nwalltime = \"x\"\n}\n":                   "f:3:12: walltime: \"x\" is not a length",
	} {
		_, _, err := parsePilots("f", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, roost.BadConfig) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestPilotsSample(t *testing.T) {
	for file, providers := range map[string]int{"pilots.hcl": 3, "laptop.hcl": 1} {
		list, err := LoadPilots("../../etc/pilots/" + file)
		if err != nil || len(list) != providers {
			t.Errorf("%s: %v, %v", file, list, err)
		}
	}
}

// TestPilotsManual compares roost-pilots(5) with the settings, both ways.
func TestPilotsManual(t *testing.T) {
	text, err := os.ReadFile("../../man/roost-pilots.5")
	if err != nil {
		t.Fatal(err)
	}
	var documented, known []string
	for _, m := range regexp.MustCompile(`(?m)^\.TP\n\.B (.*)$|^\.SS "([a-z_]+)"$`).FindAllSubmatch(text, -1) {
		documented = append(documented, string(m[1])+string(m[2]))
	}
	s := fullProvider()
	setting := regexp.MustCompile(`(?m)^ *([a-z_]+) (?: *=|.*\{$)`)
	for _, m := range setting.FindAllStringSubmatch(PilotProviderText(&s), -1) {
		known = append(known, m[1])
	}
	known = append(slices.DeleteFunc(known, func(n string) bool { return n == "provider" }), "attributes")
	slices.Sort(documented)
	slices.Sort(known)
	if !slices.Equal(documented, known) {
		t.Errorf("the manual tells of\n%v\nand the file knows\n%v", documented, known)
	}
}
