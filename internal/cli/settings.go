package cli

import (
	"github.com/roost-batch/roost/negotiator"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// cellSettings prints the settings of the cell.
func (c *call) cellSettings() error {
	var all []negotiator.Setting
	if err := c.shown("settings", &all); err != nil {
		return err
	}
	if c.json() {
		return printJSON(c.stdout, document{"settings": all})
	}
	t := &table{columns: []column{{head: "SETTING"}, {head: "VALUE", least: 12}, {head: "SET BY", spare: 1}, {head: "WHAT", least: 20, spare: 2}}}
	for _, s := range all {
		value, colour := s.Value, ""
		if s.By != "" {
			colour = bold
		}
		t.add(cell{s.Name, ""}, cell{printable(value), colour}, cell{printable(s.By), dim}, cell{s.What, dim})
	}
	t.drop("SET BY")
	t.print(c.stdout, c.out)
	return nil
}

// cellSet changes one setting.
func (c *call) cellSet(name, value string) error {
	if value == "" {
		return advise(usage("an empty value is none"), "put it back to its default with: roost cell unset "+name)
	}
	return c.set(ledger.KindSetting, wish{"name": name, "value": value})
}
