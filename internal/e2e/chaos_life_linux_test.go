package e2e_test

import (
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// deltaRenamed is the name that delta takes.
const deltaRenamed = "delta-renamed"

// delta is the cluster of TestChaos that does not stay.
type delta struct {
	name     string // empty: it is not there
	document string
	went     map[string]int // how often it went, by name
}

// turn is what a pull request does to delta, besides changing other clusters.
type turn struct {
	word   string
	names  []string // the cluster to wait for, if any
	change files
	await  func(pr *pull)
}

// turn lets delta come, take its other name, or go; in every other round, by chance, it does not.
func (c *chaos) turn(generation string) turn {
	c.w.t.Helper()
	next := turn{word: "stays as it is", await: func(*pull) {}}
	switch chance := c.m.rng.IntN(2); {
	case chance != 0:
	case c.delta.name == "":
		next = c.deltaComes(generation)
	case c.delta.name == "delta" && c.m.rng.IntN(2) == 0:
		next = c.deltaIsRenamed()
	default:
		next = c.deltaGoes()
	}
	c.turns[next.word]++
	return next
}

func (c *chaos) deltaComes(generation string) turn {
	const name = "delta"
	change := c.cluster(name, generation)
	return turn{"comes", []string{name}, change, func(pr *pull) {
		c.untilApplied(pr, name, generation)
		c.delta.name, c.delta.document = name, change["clusters/"+name+".yaml"]
	}}
}

func (c *chaos) deltaIsRenamed() turn {
	was, name := c.delta.name, deltaRenamed
	text := strings.Replace(c.delta.document, "name: "+was+"\n", "name: "+name+"\n  renamedFrom: "+was+"\n", 1)
	return turn{"is renamed", []string{name}, join(gone(was), files{"clusters/" + name + ".yaml": text}), func(pr *pull) {
		c.w.until(was+" is "+name, func() (bool, string) {
			rec := c.w.record(name)
			return rec.Phase == holdfast.PhaseActive && rec.Waiting == "" && c.w.record(was).Phase == holdfast.PhaseDeleted, c.help(pr, name, rec)
		})
		c.serials[name] = c.serials[was]
		delete(c.serials, was)
		c.serial(name)
		c.delta.name = name
	}}
}

func (c *chaos) deltaGoes() turn {
	name := c.delta.name
	return turn{"goes", []string{name}, gone(name), func(pr *pull) {
		c.w.until(name+" is destroyed", func() (bool, string) {
			rec := c.w.record(name)
			return rec.Phase == holdfast.PhaseDeleted, c.help(pr, name, rec)
		})
		delete(c.serials, name)
		c.delta.name = ""
		c.delta.went[name]++
	}}
}

// judgeDestroyed says that a cluster was destroyed as often as its document went.
func (c *chaos) judgeDestroyed(name string) {
	c.w.t.Helper()
	destroyed := 0
	for _, run := range c.w.runs(name) {
		if run.Kind == holdfast.RunDestroy && run.Status == holdfast.RunApplied {
			destroyed++
		}
	}
	if want := c.delta.went[name]; destroyed != want {
		c.w.t.Errorf("%s was destroyed %d times, want %d", name, destroyed, want)
	}
}
