"""What `sreport --help` says behind its options: commands, reports, and what these take."""

HELP = """
  Without a command it asks for one after the other, until the end of the input.

    Valid <COMMAND> values are:
     exit                end
     help                print this text
     nonparsable         columns again
     parsable            fields with a | behind each
     parsable2           fields with a | between them
     quiet               print errors alone
     quit                end
     time <time_format>  Seconds, Minutes, Hours, Percent, SecPer, MinPer or HourPer
     verbose             say more
     version             print the version
     !!                  the last command once more

    Valid report types are:
     cluster <REPORT> <OPTIONS>
     job <REPORT> <OPTIONS>
     reservation <REPORT> <OPTIONS>
     user <REPORT> <OPTIONS>

  <REPORT> is different for each report type.
     cluster - AccountUtilizationByUser, UserUtilizationByAccount,
               UserUtilizationByWckey, Utilization, WCKeyUtilizationByUser
     job     - SizesByAccount, SizesByAccountAndWckey, SizesByWckey
     reservation
             - Utilization
     user    - TopUsage

  <OPTIONS> are different for each report type.

     COMMON FOR ALL TYPES
             - All_Clusters     - all clusters, not the own one alone
             - Clusters=<OPT>   - these clusters
             - End=<OPT>        - up to here; else the end of yesterday
             - Format=<OPT>     - fields to print, name%width each
             - Start=<OPT>      - from here on; else the beginning of yesterday

     cluster - Accounts=<OPT>   - these accounts
             - Tree             - accounts below the ones that have them
             - Users=<OPT>      - these users
             - Wckeys=<OPT>     - these keys

     job     - Accounts=<OPT>   - these accounts and those below them
             - AcctAsParent     - one line for each account below those
             - FlatView         - accounts by themselves, without what is below
             - GID=<OPT>        - jobs of these groups
             - Grouping=<OPT>   - bounds of the sizes, or "individual"
             - Jobs=<OPT>       - these jobs
             - Nodes=<OPT>      - jobs that ran there
             - Partitions=<OPT> - jobs of these partitions
             - PrintJobCount    - how many jobs, not how long
             - Users=<OPT>      - jobs of these users
             - Wckeys=<OPT>     - jobs of these keys

     reservation
             - Names=<OPT>      - these reservations
             - Nodes=<OPT>      - those that had these nodes

     user    - Accounts=<OPT>   - these accounts
             - Group            - one line for a user, whatever the accounts
             - TopCount=<OPT>   - how many users; else 10
             - Users=<OPT>      - these users

  Times are HH:MM[:SS] [AM|PM], MMDD[YY], MM/DD[/YY][-HH:MM[:SS]], MM.DD[.YY],
  YYYY-MM-DD[THH:MM[:SS]] or now[{+|-}count[seconds|minutes|hours|days|weeks]].

  All commands and options are case-insensitive.
"""
