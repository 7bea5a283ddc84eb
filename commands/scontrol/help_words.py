"""What `scontrol --help` says behind its options: commands and what they are about."""

HELP = """
  Without a command it asks for one after the other, until the end of the input.

    Valid <COMMAND> values are:
     abort                    end the controller at once
     all                      show hidden partitions, too
     cancel_reboot <nodelist> forget a reboot that has not begun
     cluster [<name>]         ask this cluster from now on; none: the own one
     completing               jobs whose nodes are not free yet
     create <SPECIFICATIONS>  a node, a partition or a reservation
     details                  more about each record
     delete <SPECIFICATIONS>  a node, a partition or a reservation
     errnumstr <ERRNO>        what an error number means
     exit                     end
     fsdampeningfactor <factor>
                              set FairShareDampeningFactor in the controller
     getent <nodelist>        users and groups of the jobs there
     help                     print this text
     hide                     leave out hidden partitions
     hold <job_list>          keep pending jobs from starting
     holdu <job_list>         the same, and their owner may release them
     listpids [<job_id<.step>>]
                              processes of jobs on this node
     notify <job_id> <text>   a line for the user of this job to read
     oneliner                 each record on one line
     pidinfo <pid>            the job of this process
     ping                     do the controllers answer?
     quiet                    print errors alone
     quit                     end
     reboot [ASAP] [nextstate=] [reason=] <ALL|nodelist>
                              reboot nodes as soon as they are idle
     reconfigure              read slurm.conf again
     release <job_list>       let held jobs start
     requeue <job_list>       begin batch jobs anew
     requeuehold <job_list>   the same, and hold them
     resume <job_list>        go on with suspended jobs
     schedloglevel <SLEVEL>   log of the scheduler on or off
     setdebug <LEVEL>         how much the controller writes into its log
     setdebugflags [+|-]<flag>
                              add a flag of DebugFlags, or take it away
     show <ENTITY> [<ID>]     one record, or all of this kind
     shutdown [<OPTS>]        end the daemons
     suspend <job_list>       stop running jobs for a while
     takeover [<number>]      have a backup controller lead
     token [lifespan=] [username=]
                              a token for authentication
     top <job_list>           put these jobs before the user's others
     uhold <job_list>         as holdu
     update <SPECIFICATIONS>  change a job, node, partition, reservation or step
     verbose                  say more
     version                  print the version
     wait_job <job_id>        until the job's nodes are ready
     write batch_script <job_id> [<file>]
                              the script into this file, or slurm-<job_id>.sh
     write config [<file>]    the configuration into a file
     !!                       the last command once more

  <ENTITY> may be "aliases", "assoc_mgr", "bbstat", "burstBuffer", "config",
       "daemons", "dwstat", "federation", "frontend", "hostlist",
       "hostlistsorted", "hostnames", "job", "licenses", "node", "partition",
       "reservation", "slurmd", "step" or "topology"

  <ID> may be the name or number of one of them, or for host lists a list, or
       a file that has it.

  <LEVEL> may be a number or a word such as "info", "verbose" or "debug2".

  <SLEVEL> may be a number, "enable" or "disable".

  <OPTS> may be "slurmctld", which leaves the nodes' daemons alone.

  <SPECIFICATIONS> are KEY=VALUE pairs as "show" prints them.
"""
