"""What passes between the stages: frozen values that check themselves when made. Read these first.

`skills`: what reading finds. `needs`: what a skill uses beyond its folder, and what it was granted. `policy`: what
scripts may do. `questions`: what a person is asked and answers. `bounds`: what walls and policy give to a run, to be
compared. `runs`: from the command to the result of a run. `records`: what is put on record, and the chain it is in.
"""
