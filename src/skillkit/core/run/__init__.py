"""A command that may run -> what its process did inside its walls.

There is one door, `place`: `Here.prepare` puts up the walls around one run, `Place.run` starts it. Behind it stand
`tiers` (which walls), `reach` (what they leave open), `source` (which bytes run), `guard/` (what must stay as it is),
`sandbox/` (the walls themselves), `process` (start, feed, read, end) and `outcome` (what a caller is told).
"""
