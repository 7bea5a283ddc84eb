"""Job priorities: what `PriorityType` names.

Place: priority, pure: time and tables are handed in. `basic` hands out falling
numbers; `multifactor` weighs age, association, fair share, size, partition, QOS and TRES, and does
so again every PriorityCalcPeriod. Both are entry points of the group `understudy.priorities`, so a
plug-in may live in another distribution (see `api`).
"""
