package qsub

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

func templateOf(attributes map[string]string) Template {
	t := Template{Version: 1, Attributes: map[string]string{"drmaa_remote_command": "/bin/work"}}
	for name, value := range attributes {
		t.Attributes["drmaa_"+name] = value
	}
	return t
}

// TestTemplateAttributes holds what the attributes of a template become in the job's ad.
func TestTemplateAttributes(t *testing.T) {
	for _, c := range []struct {
		attributes map[string]string
		bulk       *TemplateIndexes
		want       map[string]string // values of the ad, as ClassAds write them
	}{
		{nil, nil, map[string]string{"Cmd": `"/bin/work"`, "JobName": `"work"`, "Iwd": `"/home/ann"`,
			"Out": `"/home/ann/work.o$(JobSeq)"`}},
		{map[string]string{"remote_command": "run me.sh", "wd": "$drmaa_hd_ph$/x"}, nil,
			map[string]string{"Cmd": `"/usr/bin/run me.sh"`, "JobName": `"run_me.sh"`, "Iwd": `"/home/ann/x"`}},
		{map[string]string{"remote_command": "./a.out", "wd": "/data"}, nil, map[string]string{"Cmd": `"/data/a.out"`}},
		{map[string]string{"job_name": "fit", "js_state": "drmaa_hold"}, nil,
			map[string]string{"JobName": `"fit"`, "HoldOnSubmit": "true"}},
		{map[string]string{"wd": "/data", "output_path": "host:$drmaa_wd_ph$/o", "error_path": ":$drmaa_hd_ph$/e",
			"input_path": ":in"}, nil,
			map[string]string{"Out": `"/data/o"`, "Err": `"/home/ann/e"`, "In": `"/data/in"`, "JoinOutput": "false"}},
		{map[string]string{"output_path": ":/o", "error_path": ":/e", "join_files": "y"}, nil,
			map[string]string{"Out": `"/o"`, "JoinOutput": "true"}},
		{map[string]string{"wd": "/w.$drmaa_incr_ph$", "output_path": ":$drmaa_wd_ph$/o.$drmaa_incr_ph$"},
			&TemplateIndexes{2, 6, 2}, map[string]string{"Iwd": `"/w.$(ArrayIndex)"`,
				"Out": `"/w.$(ArrayIndex)/o.$(ArrayIndex)"`, "ArrayIndexes": `"2-6:2"`}},
		{map[string]string{"wd": "/w.$drmaa_incr_ph$"}, &TemplateIndexes{7, 7, 1},
			map[string]string{"Iwd": `"/w.7"`, "ArrayIndexes": ""}},
		{map[string]string{"native_specification": "-q long -l walltime=60,ncpus=3 -p 5", "wct_hlimit": "1:00:00"}, nil,
			map[string]string{"Queue": `"long"`, "RequestCpus": "3", "JobPrio": "5", "Walltime": "3600"}},
		{map[string]string{"wct_hlimit": "30", "duration_hlimit": "1:10", "wct_slimit": "20"}, nil,
			map[string]string{"Walltime": "30"}},
		{map[string]string{"start_time": "18:00"}, nil,
			map[string]string{"DeferralTime": fmt.Sprint(time.Date(2026, 11, 21, 18, 0, 0, 0, time.UTC).Unix())}},
		{map[string]string{"deadline_time": "2026/11/22 00:00"}, nil,
			map[string]string{"PeriodicRemove": fmt.Sprintf("time() >= %d",
				time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC).Unix())}},
		{map[string]string{"block_email": "1", "native_specification": "-M ann@x.org"}, nil,
			map[string]string{"MailUsers": ""}},
	} {
		template := templateOf(c.attributes)
		template.Bulk = c.bulk
		result, _, err := ParseTemplate(template, nil, testCaller(""))
		if err != nil {
			t.Errorf("%v: %v", c.attributes, err)
			continue
		}
		for name, want := range c.want {
			got := ""
			if e, ok := result.Job.Ad.Lookup(name); ok {
				got = e.String()
			}
			if got != want {
				t.Errorf("%v: %s is %s, want %s", c.attributes, name, got, want)
			}
		}
	}
}

// TestTemplateLists holds what vector attributes become. The category comes before the
// native specification.
func TestTemplateLists(t *testing.T) {
	template := templateOf(map[string]string{"native_specification": "-v B=2,C=3 -N fit"})
	template.Lists = map[string][]string{"drmaa_v_argv": {"$HOME", "a b"}, "drmaa_v_env": {"C=x=y\nz", "D="},
		"drmaa_v_email": {"ann@x.org", "bob@x.org"}}
	result, _, err := ParseTemplate(template, []string{"-N", "other", "-q", "long"}, testCaller(""))
	if err != nil {
		t.Fatal(err)
	}
	ad := result.Job.Ad
	if list, _ := ad.Strings(roost.AttrArguments); !slices.Equal(list, []string{"$$HOME", "a b"}) {
		t.Errorf("arguments are %q", list)
	}
	environment, _ := ad.Strings(roost.AttrEnvironment)
	for _, want := range []string{"B=2", "C=x=y\nz", "D="} {
		if !slices.Contains(environment, want) {
			t.Errorf("%q is not in the environment %q", want, environment)
		}
	}
	if to, _ := ad.Str(roost.AttrMailUsers); to != "ann@x.org,bob@x.org" {
		t.Errorf("mail goes to %q", to)
	}
	if queue, _ := ad.Str(roost.AttrQueue); queue != "long" || result.Job.Name != "fit" {
		t.Errorf("queue %q, name %q", queue, result.Job.Name)
	}
}

// TestTemplateRefusals holds the error numbers of refused templates.
func TestTemplateRefusals(t *testing.T) {
	for _, c := range []struct {
		attributes map[string]string
		bulk       *TemplateIndexes
		want       int
	}{
		{map[string]string{"remote_command": ""}, nil, DRMAAInvalidAttributeValue},
		{map[string]string{"js_state": "x"}, nil, DRMAAInvalidAttributeValue},
		{map[string]string{"job_name": "a b"}, nil, DRMAAInvalidAttributeValue},
		{map[string]string{"wd": "data"}, nil, DRMAAInvalidAttributeValue},
		{map[string]string{"wd": "/a/$drmaa_wd_ph$"}, nil, DRMAAInvalidAttributeValue},
		{map[string]string{"output_path": "/o"}, nil, DRMAAInvalidAttributeFormat},
		{map[string]string{"input_path": ":"}, nil, DRMAAInvalidAttributeFormat},
		{map[string]string{"start_time": "25:00"}, nil, DRMAAInvalidAttributeFormat},
		{map[string]string{"deadline_time": "2026/11/20 00:00"}, nil, DRMAAInvalidAttributeValue},
		{map[string]string{"wct_hlimit": "1:2:3:4"}, nil, DRMAAInvalidAttributeFormat},
		{map[string]string{"wct_hlimit": "0"}, nil, DRMAAInvalidAttributeFormat},
		{map[string]string{"wct_hlimit": "5", "wct_slimit": "6"}, nil, DRMAAConflictingAttributes},
		{map[string]string{"join_files": "y", "error_path": ":/e"}, nil, DRMAAConflictingAttributes},
		{map[string]string{"transfer_files": "x"}, nil, DRMAAInvalidAttributeValue},
		{map[string]string{"native_specification": "-J 1-3"}, nil, DRMAADenied},
		{map[string]string{"native_specification": "-l 'x"}, nil, DRMAAInvalidAttributeFormat},
		{map[string]string{"native_specification": "-- sleep"}, nil, DRMAADenied},
		{map[string]string{"native_specification": "-l mem=x"}, nil, DRMAADenied},
		{nil, &TemplateIndexes{1, 3, 0}, DRMAAInvalidArgument},
		{nil, &TemplateIndexes{3, 1, 1}, DRMAAInvalidArgument},
		{nil, &TemplateIndexes{0, 3, 1}, DRMAAInvalidArgument},
		{nil, &TemplateIndexes{1, 9_000_000, 1}, DRMAADenied},
	} {
		template := templateOf(c.attributes)
		template.Bulk = c.bulk
		_, _, err := ParseTemplate(template, nil, testCaller(""))
		var refused *TemplateError
		if !errors.As(err, &refused) || refused.Number != c.want {
			t.Errorf("%v %v: %v, want error %d", c.attributes, c.bulk, err, c.want)
		}
	}
	if _, _, err := ParseTemplate(Template{Version: 2}, nil, testCaller("")); err == nil {
		t.Error("version 2 of templates is taken")
	}
}

// TestBulkIndexes holds the order of the jobs of a bulk.
func TestBulkIndexes(t *testing.T) {
	for _, c := range []struct {
		bulk TemplateIndexes
		want []int
	}{{TemplateIndexes{1, 3, 1}, []int{1, 2, 3}}, {TemplateIndexes{2, 7, 2}, []int{2, 4, 6}},
		{TemplateIndexes{7, 2, -2}, []int{7, 5, 3}}, {TemplateIndexes{5, 5, -1}, []int{5}}} {
		template := templateOf(nil)
		template.Bulk = &c.bulk
		if result, got, err := ParseTemplate(template, nil, testCaller("")); err != nil || !slices.Equal(got, c.want) ||
			result.Job.Count != len(c.want) {
			t.Errorf("%v: %v, %d tasks, %v", c.bulk, got, result.Job.Count, err)
		}
	}
}

// TestTemplateTimes holds what partial time stamps mean at noon of 21 November 2026.
func TestTemplateTimes(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"13:00":                     "2026-11-21T13:00:00Z",
		"11:59:59":                  "2026-11-22T11:59:59Z",
		"22 01:00":                  "2026-11-22T01:00:00Z",
		"03 01:00":                  "2026-12-03T01:00:00Z",
		"11/20 01:00":               "2027-11-20T01:00:00Z",
		"27/01/02 03:04:05":         "2027-01-02T03:04:05Z",
		"2020/01/02 03:04":          "2020-01-02T03:04:00Z",
		"13:00 +02:00":              "2026-11-22T13:00:00+02:00",
		"2026/12/24 18:00:00-05:00": "2026-12-24T18:00:00-05:00",
	} {
		if got, ok := parseTemplateTime(text, now); !ok || got.Format(time.RFC3339) != want {
			t.Errorf("%q is %v, %v; want %s", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "noon", "24:00", "31 01:00", "13/01 01:00", "1 01:00", "12:00 +2", "12:00 x",
		"2026/11/22", "a b c"} {
		if got, ok := parseTemplateTime(text, now); ok {
			t.Errorf("%q is %v", text, got)
		}
	}
}
